select auction, bidder, price, date_time, extra from {{ source('nexmark', 'bid') }}
