with sales as (
    with counted as (
        select shop_id, product_id, count(*) as sale_count, sum(coalesce(amount, 0)) as amount from {{ source('raw', 'sales') }} group by shop_id, product_id
    )

    select * from counted where amount > 10
),

shops as (
    select sales.shop_id, count(*) as product_count, sum(sales.amount) as amount from sales group by sales.shop_id
)

select shops.*, coalesce(h.shop_name, 'nobody') as shop_name
from shops
left join {{ source('raw', 'shops') }} as h on shops.shop_id = h.shop_id
