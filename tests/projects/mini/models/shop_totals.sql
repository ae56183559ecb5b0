select
    shop_id,
    count(*) as sale_count,
    sum(amount) as sales_amount

from {{ ref('stg_shop__sales') }}

group by 1
