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

restaurant_windows as (

    {% for hours in var('window_hours') %}
    select
        restaurant_id,
        restaurant_name,
        time_zone,
        currency_code,
        {{ hours }} as window_hours

    from restaurants

    {% if not loop.last %}union all{% endif %}
    {% endfor %}

),

{# the kinds of a window side by side: one row to join with, not four #}
order_figures as (

    select
        restaurant_id,
        window_hours,
        max(case when window_kind = 'current' then order_count end)
            as order_count,
        max(case when window_kind = 'current' then sales_amount end)
            as sales_amount,
        max(case when window_kind = 'previous' then order_count end)
            as previous_order_count,
        max(case when window_kind = 'previous' then sales_amount end)
            as previous_sales_amount,
        max(case when window_kind = 'compared' then order_count end)
            as compared_order_count,
        max(case when window_kind = 'compared' then sales_amount end)
            as compared_sales_amount,
        max(case when window_kind = 'last_week' then order_count end)
            as last_week_order_count,
        max(case when window_kind = 'last_week' then sales_amount end)
            as last_week_sales_amount

    from order_windows

    group by 1, 2

),

customer_figures as (

    select
        restaurant_id,
        window_hours,
        max(case when window_kind = 'current' then unique_customers end)
            as unique_customers,
        max(case when window_kind = 'compared' then unique_customers end)
            as compared_unique_customers,
        max(case when window_kind = 'last_week' then unique_customers end)
            as last_week_unique_customers

    from counted_customers

    group by 1, 2

),

order_metrics as (

    select
        ---------- ids
        restaurant_windows.restaurant_id,

        ---------- strings
        restaurant_windows.restaurant_name,
        restaurant_windows.time_zone,
        restaurant_windows.currency_code,

        ---------- numerics
        restaurant_windows.window_hours,
        {% for prefix in ['', 'previous_', 'compared_', 'last_week_'] %}
        {% set order_count = prefix ~ 'order_count' %}
        {% set sales_amount = prefix ~ 'sales_amount' %}
        coalesce(order_figures.{{ order_count }}, 0) as {{ order_count }},
        cast(
            coalesce(order_figures.{{ sales_amount }}, 0) as decimal(18, 2)
        ) as {{ sales_amount }},
        {# no order, no average: NULL, not zero #}
        cast(
            cast(order_figures.{{ sales_amount }} as decimal(18, 2))
            / order_figures.{{ order_count }}
            as decimal(18, 2)
        ) as {{ prefix ~ 'average_order_value' }},
        {% endfor %}
        coalesce(customer_figures.unique_customers, 0) as unique_customers,
        coalesce(customer_figures.compared_unique_customers, 0)
            as compared_unique_customers,
        coalesce(customer_figures.last_week_unique_customers, 0)
            as last_week_unique_customers

    from restaurant_windows

    left join order_figures
        on
            restaurant_windows.restaurant_id = order_figures.restaurant_id
            and restaurant_windows.window_hours = order_figures.window_hours

    left join customer_figures
        on
            restaurant_windows.restaurant_id = customer_figures.restaurant_id
            and restaurant_windows.window_hours = customer_figures.window_hours

)

select * from order_metrics
