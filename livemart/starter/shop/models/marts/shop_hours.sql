-- One row per shop and hour. With the count(*) a refresh can take rows away.
select
    shop_id,
    date_trunc('hour', ordered_at) as hour_started_at,
    count(*) as order_count,
    sum(amount) as sales_amount

from {{ ref('stg_shop__orders') }}

group by 1, 2
