select sale_id, row_number() over (order by sold_at asc, sale_id asc) as position from {{ source('raw', 'sales') }}
