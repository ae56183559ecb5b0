select
    sale_id,
    shop_id,
    lag(amount) over (partition by shop_id order by sold_at asc, sale_id asc) as previous_amount,
    lead(sold_at, 2) over (partition by shop_id order by sold_at asc, sale_id asc) as next_but_one_sold_at
from {{ source('raw', 'sales') }}
