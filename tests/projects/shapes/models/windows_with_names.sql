select
    sale_id,
    sum(quantity) over by_shop as sold_in_shop,
    rank() over (by_customer) as place
from {{ source('raw', 'sales') }}
window
    by_shop as (partition by shop_id),
    by_customer as (partition by customer_id order by quantity desc)
