select shop_id, customer_id, quantity, max(amount) as most, count(distinct product_id) as products
from {{ source('raw', 'sales') }}
group by shop_id, grouping sets ((customer_id, quantity), quantity, ())
