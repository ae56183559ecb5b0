select bidder, window(date_time, '10 minutes').start as started_at, count(*) as bid_count
from {{ source('nexmark', 'bid') }}
group by bidder, window(date_time, '10 minutes')
