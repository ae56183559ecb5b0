{# The day is a function of the pane: a partition that small batches rewrite. #}
{{ config(partition_by=['pane_date']) }}

{% set pane_size = var('pane_minutes') ~ ' minutes' %}

with

order_items as (

    select * from {{ ref('int_order_items_accepted') }}

),

dish_panes as (

    select
        ---------- ids
        restaurant_id,
        dish_id,

        ---------- timestamps
        window(ordered_at, '{{ pane_size }}').start as pane_started_at,
        cast(
            window(ordered_at, '{{ pane_size }}').start as date
        ) as pane_date,

        ---------- numerics
        count(*) as order_item_count,
        sum(quantity) as quantity_sold,
        sum(item_amount) as sales_amount

    from order_items

    group by 1, 2, 3, 4

)

select * from dish_panes
