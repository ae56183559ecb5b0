select
    auction,
    date_format(date_time, 'yyyy-MM-dd') as day,
    count(*) as total_bids,
    count(*) filter (where price < 100) as rank1_bids,
    min(price) as min_price,
    max(price) as max_price,
    avg(price) as avg_price,
    sum(price) as sum_price
from {{ source('nexmark', 'bid') }}
group by auction, date_format(date_time, 'yyyy-MM-dd')
