select s.shop_id, max(s.amount) as most
from {{ source('raw', 'sales') }} as s
left semi join (
    select customer_id, sum(quantity) over (partition by customer_id order by sold_at range between interval 1 hour preceding and current row) as quantity_1h from {{ source('raw', 'sales') }}
) as r on s.customer_id = r.customer_id and r.quantity_1h > 2
group by s.shop_id
