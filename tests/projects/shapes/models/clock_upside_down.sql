select shop_id, count(*) as sale_count
from {{ source('raw', 'sales') }}
where sold_at + interval 2 hours >= (select as_of from {{ source('livemart', 'clock') }}) and not (sold_at >= (select max(as_of) from {{ source('livemart', 'clock') }}))
group by shop_id
