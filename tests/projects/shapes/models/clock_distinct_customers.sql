select shop_id, count(distinct customer_id) as customers
from {{ source('raw', 'sales') }}
where sold_at between (select as_of - interval 2 hours from {{ source('livemart', 'clock') }}) and (select as_of from {{ source('livemart', 'clock') }})
group by shop_id
