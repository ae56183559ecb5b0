{# The day is a function of the pane: a partition that small batches rewrite. #}
{{ config(partition_by=['pane_date']) }}

{% set pane = "window(ordered_at, '" ~ var('pane_minutes') ~ " minutes').start" %}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

order_panes as (

    select
        ---------- ids
        restaurant_id,

        ---------- timestamps
        {{ pane }} as pane_started_at,
        cast({{ pane }} as date) as pane_date,

        ---------- numerics
        count(*) as order_count,
        sum(order_amount) as sales_amount

    from orders

    group by 1, 2, 3

)

select * from order_panes
