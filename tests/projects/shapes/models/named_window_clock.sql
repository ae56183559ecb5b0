select sale_id, shop_id, count(*) over w as place
from {{ source('raw', 'sales') }}
window w as (partition by shop_id order by case when sold_at > (select as_of from {{ source('livemart', 'clock') }}) - interval 2 hours then 0 else 1 end, sale_id)
