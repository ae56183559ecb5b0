select h.shop_id, h.region from {{ source('raw', 'shops') }} as h
where exists (select 1 from {{ source('raw', 'sales') }} as s where s.shop_id = h.shop_id and s.amount > 20)
