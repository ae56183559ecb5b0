select s.sale_id, s.amount, p.category
from {{ source('raw', 'sales') }} as s
left join {{ source('raw', 'products') }} as p on s.product_id = p.product_id
where p.category is null or p.category <> 'food'
