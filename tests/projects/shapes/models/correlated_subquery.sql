select h.shop_id, (select max(s.amount) from {{ source('raw', 'sales') }} as s where s.shop_id = h.shop_id) as most from {{ source('raw', 'shops') }} as h
