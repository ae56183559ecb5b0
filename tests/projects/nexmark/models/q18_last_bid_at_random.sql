select auction, bidder, price, date_time
from (
    select *, row_number() over (
        partition by bidder, auction order by date_time desc, price, channel, url, extra
    ) as place
    from {{ source('nexmark', 'bid') }}
)
where place <= 1
