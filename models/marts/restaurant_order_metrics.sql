{# the kinds of a window, and how their columns begin #}
{% set prefixes = {
    'current': '',
    'previous': 'previous_',
    'compared': 'compared_',
    'last_week': 'last_week_',
} %}

with

restaurants as (

    select * from {{ ref('stg_ordering__restaurants') }}

),

order_windows as (

    select * from {{ ref('int_order_windows_totaled') }}

),

counted_customers as (

    select * from {{ ref('int_customers_counted') }}

),

restaurants_totaled as (

    select
        restaurants.restaurant_id,
        restaurants.restaurant_name,
        restaurants.time_zone,
        {% for kind in prefixes %}
        {% for hours in var('window_hours') %}
        order_windows.{{ kind }}_order_count_{{ hours }}h,
        order_windows.{{ kind }}_sales_amount_{{ hours }}h,
        {% if kind != 'previous' %}
        counted_customers.{{ kind }}_unique_customers_{{ hours }}h,
        {% endif %}
        {% endfor %}
        {% endfor %}
        restaurants.currency_code

    from restaurants

    left join order_windows
        on restaurants.restaurant_id = order_windows.restaurant_id

    left join counted_customers
        on restaurants.restaurant_id = counted_customers.restaurant_id

),

{# a row for each length of window: the joins are done once, not for each #}
restaurant_windows as (

    select
        restaurants_totaled.restaurant_id,
        restaurants_totaled.restaurant_name,
        restaurants_totaled.time_zone,
        restaurants_totaled.currency_code,
        windows.*

    from restaurants_totaled

        lateral view stack(
            {{ var('window_hours') | length }},
            {% for hours in var('window_hours') %}
            {% for kind in prefixes %}
            {{ kind }}_order_count_{{ hours }}h,
            {{ kind }}_sales_amount_{{ hours }}h,
            {% if kind != 'previous' %}
            {{ kind }}_unique_customers_{{ hours }}h,
            {% endif %}
            {% endfor %}
            {{ hours }}{% if not loop.last %},{% endif %}
            {% endfor %}
        ) windows as
        {% for prefix in prefixes.values() %}
        {{ prefix }}order_count,
        {{ prefix }}sales_amount,
        {% if prefix != 'previous_' %}
        {{ prefix }}unique_customers,
        {% endif %}
        {% endfor %}
        window_hours

),

order_metrics as (

    select
        ---------- ids
        restaurant_id,

        ---------- strings
        restaurant_name,
        time_zone,
        currency_code,

        ---------- numerics
        window_hours,
        {% for prefix in prefixes.values() %}
        coalesce({{ prefix }}order_count, 0) as {{ prefix }}order_count,
        cast(coalesce({{ prefix }}sales_amount, 0) as decimal(18, 2))
            as {{ prefix }}sales_amount,
        {# no order, no average: NULL, not zero #}
        cast(
            cast({{ prefix }}sales_amount as decimal(18, 2))
            / nullif({{ prefix }}order_count, 0)
            as decimal(18, 2)
        ) as {{ prefix }}average_order_value,
        {% endfor %}
        coalesce(unique_customers, 0) as unique_customers,
        coalesce(compared_unique_customers, 0) as compared_unique_customers,
        coalesce(last_week_unique_customers, 0) as last_week_unique_customers

    from restaurant_windows

)

select * from order_metrics
