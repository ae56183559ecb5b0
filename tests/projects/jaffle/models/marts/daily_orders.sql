{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['order_date']) }}
select customer_id, count(*) as order_count, cast(ordered_at as date) as order_date
from {{ ref('stg_orders') }}
{% if is_incremental() %}
where cast(ordered_at as date) >= (select max(order_date) from {{ this }})
{% endif %}
group by customer_id, cast(ordered_at as date)
