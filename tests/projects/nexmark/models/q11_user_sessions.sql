select bidder, count(*) as bid_count, session_window.start as started_at, session_window.end as ended_at
from {{ source('nexmark', 'bid') }}
group by bidder, session_window(date_time, '10 minutes')
