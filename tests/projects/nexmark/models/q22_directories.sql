select
    auction,
    split_part(url, '/', 4) as dir1,
    split_part(url, '/', 5) as dir2,
    split_part(url, '/', 6) as dir3
from {{ source('nexmark', 'bid') }}
