{# Returns the panes of the trend that int_order_panes_totaled does not have,
   and the other way round. #}
(
    select
        restaurant_id,
        pane_started_at,
        order_count,
        sales_amount

    from {{ ref('restaurant_sales_trend') }}

    except all

    select
        restaurant_id,
        pane_started_at,
        order_count,
        cast(sales_amount as decimal(18, 2)) as sales_amount

    from {{ ref('int_order_panes_totaled') }}
)

union all

(
    select
        restaurant_id,
        pane_started_at,
        order_count,
        cast(sales_amount as decimal(18, 2)) as sales_amount

    from {{ ref('int_order_panes_totaled') }}

    except all

    select
        restaurant_id,
        pane_started_at,
        order_count,
        sales_amount

    from {{ ref('restaurant_sales_trend') }}
)
