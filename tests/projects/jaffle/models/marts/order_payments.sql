{{ config(materialized='ephemeral') }}
select order_id, sum(amount) as amount, count(*) as payment_count
from {{ ref('stg_payments') }}
where amount >= {{ var('smallest_amount') }}
group by order_id
