select a.sale_id, b.sale_id as other_sale_id, a.amount - b.amount as difference
from {{ source('raw', 'sales') }} as a
inner join {{ source('raw', 'sales') }} as b
    on a.customer_id = b.customer_id and a.shop_id <> b.shop_id
