{# The rule of int_orders_accepted for the lines of an order, joined to the
   restaurant and not to the order: both sides of that join would be huge. #}
{{ config(materialized='view') }}

with

order_items as (

    select * from {{ ref('stg_ordering__order_items') }}

),

restaurants as (

    select * from {{ ref('int_restaurants_priced') }}

),

accepted_order_items as (

    select
        ---------- ids
        order_items.order_id,
        order_items.restaurant_id,
        order_items.dish_id,

        ---------- numerics
        order_items.item_position,
        order_items.quantity,
        order_items.item_amount,

        ---------- timestamps
        order_items.ordered_at

    from order_items

    inner join restaurants
        on
            order_items.restaurant_id = restaurants.restaurant_id
            and order_items.currency_code = restaurants.currency_code

    where
        not order_items.is_cancelled
        and order_items.dish_id is not null

)

select * from accepted_order_items
