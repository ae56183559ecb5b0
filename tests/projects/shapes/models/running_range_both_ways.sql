select
    sale_id,
    shop_id,
    sold_at,
    max(amount) over (partition by shop_id order by sold_at desc range between interval 30 minutes preceding and interval 10 minutes following) as most,
    count(amount) over (partition by shop_id order by sold_at asc nulls last range between interval 2 hours preceding and interval 1 hour preceding) as earlier_count
from {{ source('raw', 'sales') }}
