select shop_id, sum(quantity) / 2 as half, count(amount) * 2 as twice, coalesce(shop_id, 'all') as shown
from (select s.shop_id, s.quantity, s.amount from {{ source('raw', 'sales') }} as s) as r
group by rollup (shop_id)
having half > 3 or twice + 1 < 4 or shown = 'all'
