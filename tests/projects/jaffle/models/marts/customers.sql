{{ config(alias='dim_customers', meta={'livemart': {'refresh': 'full'}}) }}
select c.customer_id, c.customer_name, count(o.order_id) as order_count, sum(o.amount) as amount
from {{ ref('stg_customers') }} c
left join {{ ref('orders') }} o on o.customer_id = c.customer_id
group by c.customer_id, c.customer_name
