select h.shop_name, s.amount
from {{ source('raw', 'shops') }} as h
left join {{ source('raw', 'sales') }} as s on h.shop_id = s.shop_id
