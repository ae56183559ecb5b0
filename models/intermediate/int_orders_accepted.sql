{# A view: the rule has one home and costs no table. #}
{{ config(materialized='view') }}

with

orders as (

    select * from {{ ref('stg_ordering__orders') }}

),

restaurants as (

    select * from {{ ref('int_restaurants_priced') }}

),

accepted_orders as (

    select
        ---------- ids
        orders.order_id,
        orders.restaurant_id,
        orders.customer_id,

        ---------- numerics
        orders.order_amount,

        ---------- timestamps
        orders.ordered_at

    from orders

    inner join restaurants
        on
            orders.restaurant_id = restaurants.restaurant_id
            {# two currencies are never added #}
            and orders.currency_code = restaurants.currency_code

    where not orders.is_cancelled

)

select * from accepted_orders
