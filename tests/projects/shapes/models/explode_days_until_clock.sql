select days.day, count(s.sale_id) as sale_count, sum(s.amount) as amount
from (
    select explode(sequence(date_trunc('hour', (select as_of from {{ source('livemart', 'clock') }})) - interval 3 hours, (select as_of from {{ source('livemart', 'clock') }}), interval 1 hour)) as day
) as days
left join {{ source('raw', 'sales') }} as s on date_trunc('hour', s.sold_at) = days.day
group by days.day
