{# The day is a function of the pane: a partition that small batches rewrite. #}
{{ config(partition_by=['pane_date']) }}

with

order_panes as (

    select * from {{ ref('int_order_panes_totaled') }}

),

running_panes as (

    select
        ---------- ids
        restaurant_id,

        ---------- numerics
        order_count,
        cast(sales_amount as decimal(18, 2)) as sales_amount,
        {% for hours in var('window_hours') %}
        {# the frame is closed: one pane less than the window, so that it is
           the half-open window that ends where this pane ends #}
        {% set minutes = hours * 60 - var('pane_minutes') %}
        sum(order_count) over (
            partition by restaurant_id
            order by pane_started_at asc
            range between interval '{{ minutes }}' minute preceding
            and current row
        ) as order_count_{{ hours }}h,
        cast(
            sum(sales_amount) over (
                partition by restaurant_id
                order by pane_started_at asc
                range between interval '{{ minutes }}' minute preceding
                and current row
            ) as decimal(18, 2)
        ) as sales_amount_{{ hours }}h,
        {% endfor %}

        ---------- timestamps
        pane_started_at,
        pane_date

    from order_panes

)

select * from running_panes
