select shop_id, visited_at, sum(seconds) over (
    partition by shop_id order by visited_at asc range between interval 20 minutes preceding and current row
) as seconds
from {{ source('raw', 'visits') }}
