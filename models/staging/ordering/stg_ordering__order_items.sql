with

source as (

    select * from {{ source('ordering', 'orders') }}

),

order_items as (

    select
        ---------- ids
        source.order_id,
        source.restaurant_id,
        exploded.item.dish_id,

        ---------- strings
        source.currency_code,

        ---------- numerics
        exploded.item_position,
        coalesce(exploded.item.quantity, 0) as quantity,
        cast(
            coalesce(exploded.item.quantity * exploded.item.unit_price, 0)
            as decimal(18, 2)
        ) as item_amount,

        ---------- booleans
        coalesce(source.status = 'cancelled', false) as is_cancelled,

        ---------- timestamps
        source.ordered_at

    from
        source
        lateral view posexplode(source.items) exploded as item_position, item

)

select * from order_items
