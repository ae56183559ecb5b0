{# A count per customer is additive, a count of distinct customers is not: this
   model takes leaving orders away, and the next one counts its rows. #}
{% set kinds = ['current', 'compared', 'last_week'] %}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

orders_placed as (

    select
        restaurant_id,
        customer_id,
        {{ window_flags('ordered_at', kinds) }}

    from orders

    where
        {{ in_any_window('ordered_at') }}
        and customer_id is not null

),

customer_windows as (

    select
        restaurant_id,
        customer_id,
        {% for kind in kinds %}
        {% for hours in var('window_hours') %}
        count_if(is_{{ kind }}_{{ hours }}h)
            as {{ kind }}_order_count_{{ hours }}h,
        {% endfor %}
        {% endfor %}
        count(*) as order_count

    from orders_placed

    group by 1, 2

)

select * from customer_windows
