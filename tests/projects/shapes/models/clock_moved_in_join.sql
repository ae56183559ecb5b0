select s.shop_id, count(*) as sale_count
from {{ source('raw', 'sales') }} as s
cross join (select as_of - interval 3 hours as as_of from {{ source('livemart', 'clock') }}) as c
where s.sold_at >= c.as_of
group by s.shop_id
