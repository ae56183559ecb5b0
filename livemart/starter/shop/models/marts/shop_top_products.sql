-- The three products that each shop sold most of in the last 24 hours.
with

sold as (

    select
        shop_id,
        product_id,
        count(*) as order_count,
        sum(quantity) as quantity_sold

    from {{ ref('stg_shop__orders') }}

    where
        ordered_at >= {{ window_start(24) }}
        and ordered_at < {{ as_of() }}

    group by 1, 2

),

ranked as (

    select
        shop_id,
        product_id,
        quantity_sold,
        -- product_id ends the order: a tie must not be a coin toss.
        row_number() over (
            partition by shop_id
            order by quantity_sold desc, product_id asc
        ) as product_rank

    from sold

)

select
    ranked.shop_id,
    ranked.product_rank,
    ranked.product_id,
    products.product_name,
    ranked.quantity_sold

from ranked

left join {{ source('shop', 'products') }} as products
    on ranked.product_id = products.product_id

where ranked.product_rank <= 3
