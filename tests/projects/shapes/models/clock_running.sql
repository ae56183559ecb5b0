select sale_id, shop_id, sum(amount) over (partition by shop_id order by sold_at asc, sale_id asc) as amount
from {{ source('raw', 'sales') }}
where sold_at >= (select as_of - interval 2 hours from {{ source('livemart', 'clock') }})
