select sale_id, window(sold_at, '2 hours', '1 hour').start as started_at from {{ source('raw', 'sales') }}
