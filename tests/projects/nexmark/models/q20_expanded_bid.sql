select b.auction, b.bidder, b.price, b.channel, b.date_time as bid_at, a.item_name, a.seller, a.category
from {{ source('nexmark', 'bid') }} as b
inner join {{ source('nexmark', 'auction') }} as a on b.auction = a.id
where a.category = 10
