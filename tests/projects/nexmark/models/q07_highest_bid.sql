select b.auction, b.price, b.bidder, b.date_time, b.extra
from {{ source('nexmark', 'bid') }} as b
inner join (
    select max(price) as maxprice, window(date_time, '10 minutes').end as ended_at
    from {{ source('nexmark', 'bid') }}
    group by window(date_time, '10 minutes')
) as b1 on b.price = b1.maxprice
where b.date_time between b1.ended_at - interval 10 minutes and b1.ended_at
