select auction, bidder, price, channel, url, date_time, extra
from (
    select *, rank() over (partition by bidder, auction order by date_time desc) as place from {{ source('nexmark', 'bid') }}
)
where place <= 1
