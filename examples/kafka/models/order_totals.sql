with

orders as (

    select * from {{ source('ordering', 'orders') }}

),

orders_totaled as (

    select
        ---------- ids
        order_id,
        restaurant_id,

        ---------- strings
        currency_code,
        status,

        ---------- timestamps
        ordered_at,

        ---------- numerics
        aggregate(
            items,
            cast(0 as decimal(12, 2)),
            (total, item) -> cast(
                total + item.quantity * item.unit_price as decimal(12, 2)
            )
        ) as order_amount

    from orders

)

select * from orders_totaled
