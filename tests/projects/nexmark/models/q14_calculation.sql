select
    auction,
    bidder,
    cast(0.908 * price as decimal(20, 3)) as price,
    case
        when hour(date_time) >= 8 and hour(date_time) <= 18 then 'day'
        when hour(date_time) <= 6 or hour(date_time) >= 20 then 'night'
        else 'other'
    end as bid_time_type,
    length(extra) - length(replace(extra, 'c', '')) as c_counts
from {{ source('nexmark', 'bid') }}
where 0.908 * price > 100
