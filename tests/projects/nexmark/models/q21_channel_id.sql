select
    auction,
    bidder,
    price,
    channel,
    case
        when lower(channel) = 'apple' then '0'
        when lower(channel) = 'google' then '1'
        else regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
    end as channel_id
from {{ source('nexmark', 'bid') }}
where regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> '' or lower(channel) in ('apple', 'google')
