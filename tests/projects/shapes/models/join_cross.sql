select h.shop_id, p.product_id, p.list_price * h.commission as commission
from {{ source('raw', 'shops') }} as h
cross join {{ source('raw', 'products') }} as p
