select s.shop_id, count(*) as sale_count, max(s.amount) as most
from {{ source('raw', 'sales') }} as s
cross join {{ source('livemart', 'clock') }} as c
where s.sold_at >= c.as_of - interval 3 hours and s.sold_at < c.as_of
group by s.shop_id
