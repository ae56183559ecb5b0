with

source as (

    select * from {{ source('ordering', 'orders') }}

),

orders as (

    select
        ---------- ids
        order_id,
        restaurant_id,
        customer_id,

        ---------- strings
        status as order_status,
        currency_code,

        ---------- numerics
        {# a missing price is nothing sold: a sum must never turn NULL #}
        cast(
            coalesce(
                aggregate(
                    items,
                    cast(0 as decimal(18, 2)),
                    (amount, item) -> cast(
                        amount
                        + coalesce(item.quantity * item.unit_price, 0)
                        as decimal(18, 2)
                    )
                ),
                0
            ) as decimal(18, 2)
        ) as order_amount,

        ---------- booleans
        coalesce(status = 'cancelled', false) as is_cancelled,

        ---------- timestamps
        ordered_at,
        updated_at

    from source

)

select * from orders
