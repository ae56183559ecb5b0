select
    sale_id,
    sum(amount) over (partition by shop_id order by sold_at asc range between interval 1 hour preceding and current row) as shop_amount,
    count(*) over (partition by customer_id order by sold_at asc range between interval 2 hours preceding and current row) as customer_count
from {{ source('raw', 'sales') }}
