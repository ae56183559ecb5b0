select s.sale_id, a.list_price as bought_price, b.list_price as line_price
from {{ source('raw', 'sales') }} as s
left join {{ source('raw', 'products') }} as a on s.product_id = a.product_id
left join {{ source('raw', 'products') }} as b on element_at(s.lines, 1).product_id = b.product_id
