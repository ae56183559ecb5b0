with parameters as (select {{ as_of() }} as now, 90 as minutes)
select s.shop_id, count(*) as sale_count, sum(s.quantity) as quantity
from {{ source('raw', 'sales') }} as s cross join parameters as p
where s.sold_at > p.now - interval 90 minutes and s.sold_at <= p.now
group by s.shop_id
