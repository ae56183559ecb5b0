select * from (
    select auction, bidder, price, date_time, rank() over (partition by auction order by price desc) as place
    from {{ source('nexmark', 'bid') }}
)
where place <= 3
