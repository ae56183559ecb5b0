select shop_id, 4 as window_hours, count(*) as hour_count, sum(sale_count) as sale_count, sum(amount) as amount
from {{ ref('hours_totaled') }}
where hour_started_at >= (select as_of - interval 4 hours from {{ source('livemart', 'clock') }}) and hour_started_at < (select as_of from {{ source('livemart', 'clock') }})
group by 1, 2
