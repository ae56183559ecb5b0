select h.shop_id, count(s.sale_id) as sale_count
from {{ source('raw', 'shops') }} as h
left join {{ source('raw', 'sales') }} as s
    on h.shop_id = s.shop_id and s.sold_at >= (select as_of - interval 2 hours from {{ source('livemart', 'clock') }})
group by h.shop_id
