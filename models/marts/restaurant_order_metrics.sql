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

current_windows as (

    select * from order_windows

    where windows_back = 0

),

previous_windows as (

    select * from order_windows

    where windows_back = 1

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
        coalesce(current_windows.order_count, 0) as order_count,
        cast(
            coalesce(current_windows.sales_amount, 0) as decimal(18, 2)
        ) as sales_amount,
        {# no order, no average: NULL, not zero #}
        cast(
            cast(current_windows.sales_amount as decimal(18, 2))
            / current_windows.order_count
            as decimal(18, 2)
        ) as average_order_value,
        coalesce(counted_customers.unique_customers, 0) as unique_customers,
        coalesce(previous_windows.order_count, 0) as previous_order_count,
        cast(
            coalesce(previous_windows.sales_amount, 0) as decimal(18, 2)
        ) as previous_sales_amount,
        cast(
            cast(previous_windows.sales_amount as decimal(18, 2))
            / previous_windows.order_count
            as decimal(18, 2)
        ) as previous_average_order_value

    from restaurant_windows

    left join current_windows
        on
            restaurant_windows.restaurant_id = current_windows.restaurant_id
            and restaurant_windows.window_hours = current_windows.window_hours

    left join previous_windows
        on
            restaurant_windows.restaurant_id = previous_windows.restaurant_id
            and restaurant_windows.window_hours = previous_windows.window_hours

    left join counted_customers
        on
            restaurant_windows.restaurant_id = counted_customers.restaurant_id
            and restaurant_windows.window_hours
            = counted_customers.window_hours

)

select * from order_metrics
