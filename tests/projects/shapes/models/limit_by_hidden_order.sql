select h.shop_name, count(*) as n
from {{ source('raw', 'shops') }} as h
inner join {{ source('raw', 'visits') }} as v on h.shop_id = v.shop_id
group by h.shop_id, h.shop_name
order by max(v.visited_at) desc nulls last, h.shop_id asc, shop_name
limit 3 offset 1
