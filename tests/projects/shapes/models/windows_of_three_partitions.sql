select
    s.sale_id,
    p.region,
    count(*) over (partition by p.region) as in_region,
    max(s.amount) over (partition by s.customer_id) - s.amount as below_most,
    lag(s.quantity) over (partition by date_trunc('hour', s.sold_at) order by s.sold_at, s.sale_id) as quantity_before
from {{ source('raw', 'sales') }} as s
left join {{ source('raw', 'shops') }} as p on s.shop_id = p.shop_id
