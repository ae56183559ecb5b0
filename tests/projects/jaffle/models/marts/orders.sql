{{ config(materialized='incremental', file_format='delta', incremental_strategy='merge', unique_key='order_id') }}
select o.order_id, o.customer_id, o.ordered_at, o.status, coalesce(p.amount, 0) as amount
from {{ ref('stg_orders') }} o
left join {{ ref('order_payments') }} p on p.order_id = o.order_id
{% if is_incremental() %}
where o.ordered_at > (select max(ordered_at) from {{ this }})
{% endif %}
