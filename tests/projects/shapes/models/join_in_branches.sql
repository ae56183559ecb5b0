select h.region, count(*) as sale_count, max(s.amount) as most
from {{ source('raw', 'sales') }} as s, {{ source('raw', 'shops') }} as h
where (s.shop_id = h.shop_id and s.quantity > 1) or (h.region <> 'north' and s.shop_id = h.shop_id)
group by h.region
