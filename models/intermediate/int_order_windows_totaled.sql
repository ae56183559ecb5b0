with

order_panes as (

    select * from {{ ref('int_order_panes_totaled') }}

),

order_windows as (

    {% for hours in var('window_hours') %}
    {% for window_kind, starts_at, ends_at in [
        ('current', window_start(hours), as_of()),
        ('previous', window_start(hours * 2), window_start(hours)),
        ('compared', window_start(hours), whole_panes_end(0)),
        ('last_week', window_start(hours + 168), whole_panes_end(168)),
    ] %}
    select
        restaurant_id,
        {{ hours }} as window_hours,
        '{{ window_kind }}' as window_kind,
        count(*) as pane_count,
        sum(order_count) as order_count,
        sum(sales_amount) as sales_amount

    from order_panes

    where
        pane_started_at >= {{ starts_at }}
        and pane_started_at < {{ ends_at }}

    group by 1, 2, 3

    {% if not loop.last %}union all{% endif %}
    {% endfor %}
    {% if not loop.last %}union all{% endif %}
    {% endfor %}

)

select * from order_windows
