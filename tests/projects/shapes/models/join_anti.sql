select s.sale_id, s.shop_id from {{ source('raw', 'sales') }} as s
left anti join {{ source('raw', 'refunds') }} as r on s.sale_id = r.sale_id
