-- The last 24 hours of each shop. as_of() is the "now" of a snapshot: orders
-- enter the window when they land, and leave it when the clock moves on.
select
    shop_id,
    count(*) as order_count,
    sum(amount) as sales_amount

from {{ ref('stg_shop__orders') }}

where
    ordered_at >= {{ window_start(24) }}
    and ordered_at < {{ as_of() }}

group by 1
