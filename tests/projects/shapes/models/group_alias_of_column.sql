select
    shop_id,
    lower(customer_id) as customer_id,
    count(*) as n,
    sum(quantity) as q
from {{ source('raw', 'sales') }}
group by shop_id, customer_id
