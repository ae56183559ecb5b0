{# A count per customer is additive, a count of distinct customers is not: this
   model takes leaving orders away, and the next one counts its rows. #}
{% set windows = {
    'current': 'is_current_{0}h',
    'compared': 'is_current_{0}h and is_whole',
    'last_week': 'is_since_last_week_{0}h and is_until_last_week',
} %}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

orders_placed as (

    select
        restaurant_id,
        customer_id,
        {% for hours in var('window_hours') %}
        ordered_at >= {{ window_start(hours) }} as is_current_{{ hours }}h,
        ordered_at >= {{ window_start(hours + 168) }}
            as is_since_last_week_{{ hours }}h,
        {% endfor %}
        ordered_at < {{ whole_panes_end(0) }} as is_whole,
        ordered_at < {{ whole_panes_end(168) }} as is_until_last_week

    from orders

    where
        {{ in_any_window('ordered_at') }}
        and customer_id is not null

),

customer_windows as (

    select
        restaurant_id,
        customer_id,
        {% for kind, is_inside in windows.items() %}
        {% for hours in var('window_hours') %}
        count_if({{ is_inside.format(hours) }})
            as {{ kind }}_order_count_{{ hours }}h,
        {% endfor %}
        {% endfor %}
        count(*) as order_count

    from orders_placed

    group by 1, 2

)

select * from customer_windows
