select count(*) as sale_count, sum(amount) as amount, max(sold_at) as last_sold_at from {{ source('raw', 'sales') }}
