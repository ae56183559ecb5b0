{# The day is a function of the pane: a partition that small batches rewrite. #}
{{ config(partition_by=['pane_date']) }}

{% set pane_size = var('pane_minutes') ~ ' minutes' %}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

order_panes as (

    select
        ---------- ids
        restaurant_id,

        ---------- timestamps
        window(ordered_at, '{{ pane_size }}').start as pane_started_at,
        cast(
            window(ordered_at, '{{ pane_size }}').start as date
        ) as pane_date,

        ---------- numerics
        count(*) as order_count,
        sum(order_amount) as sales_amount

    from orders

    group by 1, 2, 3

)

select * from order_panes
