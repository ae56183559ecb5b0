with

orders as (

    select * from {{ source('shop', 'orders') }}

),

order_lines as (

    select * from {{ source('shop', 'order_lines') }}

),

lines_totaled as (

    select
        ---------- ids
        order_id,

        ---------- numerics
        count(*) as line_count,
        sum(quantity * price) as order_amount

    from order_lines

    group by 1

),

orders_totaled as (

    select
        ---------- ids
        orders.order_id,
        orders.customer_id,

        ---------- strings
        orders.status,

        ---------- timestamps
        orders.placed_at,

        ---------- numerics
        coalesce(lines_totaled.line_count, 0) as line_count,
        coalesce(lines_totaled.order_amount, 0) as order_amount

    from orders

    left join lines_totaled on orders.order_id = lines_totaled.order_id

)

select * from orders_totaled
