select window.start as window_started_at, window.end as window_ended_at, count(*) as sale_count, max(amount) as most
from (select window(sold_at, '2 hours', '30 minutes') as window, amount from {{ source('raw', 'sales') }})
group by window
