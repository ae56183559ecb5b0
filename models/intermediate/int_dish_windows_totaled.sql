with

dish_panes as (

    select * from {{ ref('int_dish_panes_totaled') }}

),

dish_windows as (

    {% for hours in var('window_hours') %}
    select
        restaurant_id,
        dish_id,
        {{ hours }} as window_hours,
        count(*) as pane_count,
        sum(quantity_sold) as quantity_sold,
        sum(sales_amount) as sales_amount

    from dish_panes

    where
        pane_started_at >= {{ window_start(hours) }}
        and pane_started_at < {{ as_of() }}

    group by 1, 2, 3

    {% if not loop.last %}union all{% endif %}
    {% endfor %}

)

select * from dish_windows
