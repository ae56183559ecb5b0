with counted as (
    select auction, window.start as started_at, window.end as ended_at, count(*) as num
    from {{ source('nexmark', 'bid') }}
    group by window(date_time, '10 minutes', '2 minutes'), auction
),

most as (
    select started_at, ended_at, max(num) as maxn from counted group by started_at, ended_at
)

select counted.auction, counted.started_at, counted.num
from counted
inner join most
    on counted.started_at = most.started_at and counted.ended_at = most.ended_at and counted.num >= most.maxn
