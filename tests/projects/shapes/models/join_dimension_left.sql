select s.sale_id, s.amount, p.category, coalesce(p.list_price, 0) - s.amount as discount
from {{ source('raw', 'sales') }} as s
left join {{ source('raw', 'products') }} as p on s.product_id = p.product_id
