{# Returns the windows whose orders are not those of their customers: the two
   are added up on different ways. Orders without a customer are exempt. #}
with

customers_totaled as (

    select
        restaurant_id,
        window_hours,
        sum(order_count) as order_count

    from {{ ref('int_customer_windows_totaled') }}

    where window_kind = 'current'

    group by 1, 2

),

order_windows as (

    select * from {{ ref('int_order_windows_totaled') }}

    where window_kind = 'current'

)

select
    customers_totaled.*,
    order_windows.order_count as window_order_count

from customers_totaled

left join order_windows
    on
        customers_totaled.restaurant_id = order_windows.restaurant_id
        and customers_totaled.window_hours = order_windows.window_hours

where customers_totaled.order_count > coalesce(order_windows.order_count, 0)
