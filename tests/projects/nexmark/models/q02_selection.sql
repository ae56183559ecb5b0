select auction, price from {{ source('nexmark', 'bid') }} where mod(auction, 3) = 0
