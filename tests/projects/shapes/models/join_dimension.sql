select s.sale_id, s.sold_at, s.amount, h.shop_name, h.region, s.amount * h.commission as commission
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
