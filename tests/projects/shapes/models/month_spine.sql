with periods as (
    select customer_id, date_trunc('month', min(sold_at)) as first_month, date_trunc('month', max(sold_at)) as last_month
    from {{ source('raw', 'sales') }}
    where sold_at is not null
    group by 1
),
days as (
    select explode(sequence(date '2026-02-25', date '2026-03-10')) as day
)
select periods.customer_id, days.day, coalesce(sum(sales.amount), 0) as amount
from periods
inner join days on days.day >= cast(periods.first_month as date)
left join {{ source('raw', 'sales') }} as sales
    on sales.customer_id = periods.customer_id and cast(sales.sold_at as date) = days.day
group by all
