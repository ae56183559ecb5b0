select s.shop_id, max(s.sold_at) as last_sold_at
from {{ source('raw', 'sales') }} as s
cross join {{ source('livemart', 'clock') }} as c
group by s.shop_id
having max(s.sold_at) < max(c.as_of) - interval 2 hours
