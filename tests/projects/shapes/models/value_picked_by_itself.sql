select
    r.sale_id,
    (
        select s.product_id from {{ source('raw', 'sales') }} as s
        where s.customer_id = r.customer_id order by date_trunc('hour', s.sold_at) desc, s.product_id limit 1
    ) as newest_product_id
from {{ source('raw', 'sales') }} as r
