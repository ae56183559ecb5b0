select s.sale_id, p.product_id, p.list_price
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'products') }} as p on s.product_id <=> p.category
