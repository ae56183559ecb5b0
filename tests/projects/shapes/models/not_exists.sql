select h.shop_id from {{ source('raw', 'shops') }} as h
where not exists (select 1 from {{ source('raw', 'sales') }} as s where s.shop_id = h.shop_id and s.quantity is null)
