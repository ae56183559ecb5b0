select customer_id, session_window(sold_at, '20 minutes').start as session_started_at, session_window(sold_at, '20 minutes').end as session_ended_at, count(*) as sale_count, sum(coalesce(amount, 0)) as amount
from {{ source('raw', 'sales') }}
group by customer_id, session_window(sold_at, '20 minutes')
