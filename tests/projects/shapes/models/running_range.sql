select
    sale_id,
    shop_id,
    sold_at,
    count(*) over (partition by shop_id order by sold_at asc range between interval 1 hour preceding and current row) as sale_count,
    sum(amount) over (partition by shop_id order by sold_at asc range between interval 1 hour preceding and current row) as amount
from {{ source('raw', 'sales') }}
