select shop_id, window(sold_at, '1 hour').start as hour_started_at, window(sold_at, '1 hour').end as hour_ended_at, count(*) as sale_count, sum(coalesce(amount, 0)) as amount
from {{ source('raw', 'sales') }}
group by shop_id, window(sold_at, '1 hour')
