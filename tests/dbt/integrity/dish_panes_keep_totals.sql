{# Returns the restaurants whose dish panes do not add up to their items. #}
with

items_totaled as (

    select
        restaurant_id,
        sum(quantity) as quantity_sold,
        sum(item_amount) as sales_amount

    from {{ ref('int_order_items_accepted') }}

    where ordered_at is not null

    group by 1

),

panes_totaled as (

    select
        restaurant_id,
        sum(quantity_sold) as quantity_sold,
        sum(sales_amount) as sales_amount

    from {{ ref('int_dish_panes_totaled') }}

    group by 1

)

select
    items_totaled.*,
    panes_totaled.quantity_sold as pane_quantity_sold,
    panes_totaled.sales_amount as pane_sales_amount

from items_totaled

full outer join panes_totaled
    on items_totaled.restaurant_id = panes_totaled.restaurant_id

where
    not (items_totaled.quantity_sold <=> panes_totaled.quantity_sold)
    or not (items_totaled.sales_amount <=> panes_totaled.sales_amount)
