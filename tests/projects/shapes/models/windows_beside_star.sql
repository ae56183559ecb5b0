select s.*, sum(s.quantity) over (partition by s.shop_id) as of_shop, dense_rank() over (partition by s.customer_id, date(s.sold_at) order by s.amount desc) as place
from {{ source('raw', 'sales') }} as s
where s.quantity is not null
qualify count(*) over (partition by s.product_id) > 1
