with

products as (

    select * from {{ source('shop', 'products') }}

),

order_lines as (

    select * from {{ source('shop', 'order_lines') }}

),

products_totaled as (

    select
        ---------- ids
        products.product_id,

        ---------- strings
        products.name as product_name,

        ---------- numerics
        sum(order_lines.quantity) as quantity,
        sum(order_lines.quantity * order_lines.price) as product_amount

    from products

    inner join order_lines on products.product_id = order_lines.product_id

    group by 1, 2

)

select * from products_totaled
