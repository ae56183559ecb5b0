with

customer_windows as (

    select * from {{ ref('int_customer_windows_totaled') }}

),

counted_customers as (

    select
        restaurant_id,
        window_hours,
        window_kind,
        count(*) as unique_customers

    from customer_windows

    group by 1, 2, 3

)

select * from counted_customers
