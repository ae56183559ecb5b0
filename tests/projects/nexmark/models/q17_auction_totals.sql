select auction, to_date(date_time) as day, count(*) as total_bids, count(price) as priced_bids, sum(price) as sum_price
from {{ source('nexmark', 'bid') }}
group by all
