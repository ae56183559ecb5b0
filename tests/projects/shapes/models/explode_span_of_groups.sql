select
    shop_id,
    count(*) as sale_count,
    explode(sequence(date_trunc('hour', min(sold_at)), date_trunc('hour', max(sold_at)), interval 1 hour)) as hour
from {{ source('raw', 'sales') }}
group by shop_id
