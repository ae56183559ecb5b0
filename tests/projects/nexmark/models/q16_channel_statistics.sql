select
    channel,
    date_format(date_time, 'yyyy-MM-dd') as day,
    max(date_format(date_time, 'HH:mm')) as minute,
    count(*) as total_bids,
    count(distinct bidder) as total_bidders,
    count(distinct auction) as total_auctions
from {{ source('nexmark', 'bid') }}
group by channel, date_format(date_time, 'yyyy-MM-dd')
