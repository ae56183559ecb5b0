select shop_id, product_id, grouping_id() as level, count(*) as sale_count, sum(coalesce(amount, 0)) as amount
from {{ source('raw', 'sales') }}
group by grouping sets ((shop_id, product_id), (shop_id), ())
