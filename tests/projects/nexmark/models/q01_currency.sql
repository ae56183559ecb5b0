select auction, bidder, cast(0.908 * price as decimal(20, 3)) as price, date_time, extra from {{ source('nexmark', 'bid') }}
