select shop_id, date_trunc('day', sold_at) as day, sum(quantity) as sold, count(*) * 2 as twice, grouping(shop_id) as of_all
from {{ source('raw', 'sales') }}
group by cube (shop_id, day)
having sold > 3 or grouping(shop_id) = 1 or shop_id is null
