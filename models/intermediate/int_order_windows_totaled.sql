with

order_panes as (

    select * from {{ ref('int_order_panes_totaled') }}

),

order_windows as (

    {% for hours in var('window_hours') %}
    {% for windows_back in [0, 1] %}
    select
        restaurant_id,
        {{ hours }} as window_hours,
        {{ windows_back }} as windows_back,
        count(*) as pane_count,
        sum(order_count) as order_count,
        sum(sales_amount) as sales_amount

    from order_panes

    where
        pane_started_at >= {{ window_start(hours * (windows_back + 1)) }}
        and pane_started_at < {{ window_start(hours * windows_back) }}

    group by 1, 2, 3

    {% if not loop.last %}union all{% endif %}
    {% endfor %}
    {% if not loop.last %}union all{% endif %}
    {% endfor %}

)

select * from order_windows
