select
    date_format(date_time, 'yyyy-MM-dd') as day,
    count(*) as total_bids,
    count(*) filter (where price < 100) as rank1_bids,
    count(*) filter (where price >= 100 and price < 500) as rank2_bids,
    count(distinct bidder) as total_bidders,
    count(distinct bidder) filter (where price < 100) as rank1_bidders,
    count(distinct auction) as total_auctions,
    count(distinct auction) filter (where price >= 500) as rank3_auctions
from {{ source('nexmark', 'bid') }}
group by date_format(date_time, 'yyyy-MM-dd')
