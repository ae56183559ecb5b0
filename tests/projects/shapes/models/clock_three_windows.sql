with sales as (
    select * from {{ source('raw', 'sales') }}
)

select shop_id, 1 as window_hours, count(*) as sale_count, sum(coalesce(quantity, 0)) as quantity
from sales
where sold_at >= (select as_of - interval 1 hours from {{ source('livemart', 'clock') }}) and sold_at < (select as_of from {{ source('livemart', 'clock') }})
group by 1, 2
union all
select shop_id, 3 as window_hours, count(*) as sale_count, sum(coalesce(quantity, 0)) as quantity
from sales
where sold_at >= (select as_of - interval 3 hours from {{ source('livemart', 'clock') }}) and sold_at < (select as_of from {{ source('livemart', 'clock') }})
group by 1, 2
union all
select shop_id, 12 as window_hours, count(*) as sale_count, sum(coalesce(quantity, 0)) as quantity
from sales
where sold_at >= (select as_of - interval 12 hours from {{ source('livemart', 'clock') }}) and sold_at < (select as_of from {{ source('livemart', 'clock') }})
group by 1, 2
