select h.shop_id, t.sale_id, t.amount
from {{ source('raw', 'shops') }} as h,
    lateral (select s.sale_id, s.amount from {{ source('raw', 'sales') }} as s where s.shop_id = h.shop_id and s.amount > 15) as t
