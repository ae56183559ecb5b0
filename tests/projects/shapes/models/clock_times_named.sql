with times as (

    select
        {{ as_of() }} as now,
        {{ as_of() }} - interval 24 hours as since,
        date({{ as_of() }}) as today

)

select s.shop_id, count(*) as n, sum(if(date(s.sold_at) < t.today, s.amount, 0)) as before_today
from {{ source('raw', 'sales') }} as s
cross join times as t
where s.sold_at >= t.since and s.sold_at < t.now
group by s.shop_id
