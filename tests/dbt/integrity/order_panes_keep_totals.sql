{# Returns the restaurants whose panes do not add up to their orders. #}
with

orders_totaled as (

    select
        restaurant_id,
        count(*) as order_count,
        sum(order_amount) as sales_amount

    from {{ ref('int_orders_accepted') }}

    where ordered_at is not null

    group by 1

),

panes_totaled as (

    select
        restaurant_id,
        sum(order_count) as order_count,
        sum(sales_amount) as sales_amount

    from {{ ref('int_order_panes_totaled') }}

    group by 1

)

select
    orders_totaled.*,
    panes_totaled.order_count as pane_order_count,
    panes_totaled.sales_amount as pane_sales_amount

from orders_totaled

full outer join panes_totaled
    on orders_totaled.restaurant_id = panes_totaled.restaurant_id

where
    not (orders_totaled.order_count <=> panes_totaled.order_count)
    or not (orders_totaled.sales_amount <=> panes_totaled.sales_amount)
