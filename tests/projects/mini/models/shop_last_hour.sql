select
    sales.shop_id,
    count(*) as sale_count,
    sum(sales.amount) as sales_amount

from {{ ref('stg_shop__sales') }} as sales

where
    sales.sold_at >= (select clock.as_of - interval 1 hour from {{ source('livemart', 'clock') }} as clock)
    and sales.sold_at < (select clock.as_of from {{ source('livemart', 'clock') }} as clock)

group by 1
