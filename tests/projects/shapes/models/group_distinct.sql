select shop_id, count(distinct customer_id) as customers, count(distinct product_id, quantity) as pairs, count(*) as sale_count
from {{ source('raw', 'sales') }}
group by shop_id
