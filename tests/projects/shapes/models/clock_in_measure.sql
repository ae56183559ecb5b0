select s.shop_id, count(*) as sale_count, sum(case when s.sold_at >= c.as_of - interval 1 hour then 1 else 0 end) as recent
from {{ source('raw', 'sales') }} as s
cross join {{ source('livemart', 'clock') }} as c
group by s.shop_id
