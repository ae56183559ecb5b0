select
    shop_id,
    count_if(sold_at >= (select as_of - interval 1 hour from {{ source('livemart', 'clock') }})) as now_count,
    count_if(sold_at < (select as_of - interval 1 hour from {{ source('livemart', 'clock') }})) as before_count
from {{ source('raw', 'sales') }}
where sold_at >= (select as_of - interval 2 hours from {{ source('livemart', 'clock') }}) and sold_at < (select as_of from {{ source('livemart', 'clock') }})
group by shop_id
