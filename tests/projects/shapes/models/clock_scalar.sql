select shop_id, count(*) as sale_count, sum(coalesce(amount, 0)) as amount
from {{ source('raw', 'sales') }}
where sold_at >= (select as_of - interval 2 hours from {{ source('livemart', 'clock') }}) and sold_at < (select as_of from {{ source('livemart', 'clock') }})
group by shop_id
