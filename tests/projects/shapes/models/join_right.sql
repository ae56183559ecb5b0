select s.sale_id, h.shop_id, h.shop_name
from {{ source('raw', 'sales') }} as s
right join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
