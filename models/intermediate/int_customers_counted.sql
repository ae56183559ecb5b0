{% set kinds = ['current', 'compared', 'last_week'] %}

with

customer_windows as (

    select * from {{ ref('int_customer_windows_totaled') }}

),

counted_customers as (

    select
        restaurant_id,
        {% for kind in kinds %}
        {% for hours in var('window_hours') %}
        count_if({{ kind }}_order_count_{{ hours }}h > 0)
            as {{ kind }}_unique_customers_{{ hours }}h,
        {% endfor %}
        {% endfor %}
        count(*) as customer_count

    from customer_windows

    group by 1

)

select * from counted_customers
