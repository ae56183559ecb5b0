select shop_id, hour_started_at, sum(amount) over (
    partition by shop_id order by hour_started_at asc range between interval 3 hours preceding and current row
) as amount
from {{ ref('hours_totaled') }}
