select s.* from {{ source('raw', 'sales') }} as s
left semi join {{ source('raw', 'refunds') }} as r on s.sale_id = r.sale_id
