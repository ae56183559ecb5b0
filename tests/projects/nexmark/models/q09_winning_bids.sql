select id, item_name, seller, category, bidder, price, bid_at
from (
    select
        a.*,
        b.bidder,
        b.price,
        b.date_time as bid_at,
        rank() over (partition by a.id order by b.price desc, b.date_time) as place
    from {{ source('nexmark', 'auction') }} as a
    inner join {{ source('nexmark', 'bid') }} as b on a.id = b.auction
    where b.date_time between a.date_time and a.expires
)
where place <= 1
