select
    shop_id,
    date_trunc('hour', sold_at) as hour_started_at,
    count(*) as sale_count,
    sum(amount) as amount,
    rank() over (order by sum(amount) desc, shop_id, 2) as place,
    count(distinct customer_id) / sum(count(distinct customer_id)) over () as share
from {{ source('raw', 'sales') }}
group by 1, date_trunc('hour', sold_at)
having sale_count > 1 and max(quantity) is not null
