with

dish_panes as (

    select * from {{ ref('int_dish_panes_totaled') }}

),

panes_placed as (

    select
        restaurant_id,
        dish_id,
        quantity_sold,
        sales_amount,
        {{ window_flags('pane_started_at', ['current']) }}

    from dish_panes

    where
        pane_started_at >= {{ window_start(var('window_hours') | max) }}
        and pane_started_at < {{ as_of() }}

),

dish_windows as (

    select
        restaurant_id,
        dish_id,
        {% for hours in var('window_hours') %}
        {% set is_inside = 'is_current_' ~ hours ~ 'h' %}
        count_if({{ is_inside }}) as pane_count_{{ hours }}h,
        coalesce(sum(case when {{ is_inside }} then quantity_sold end), 0)
            as quantity_sold_{{ hours }}h,
        coalesce(sum(case when {{ is_inside }} then sales_amount end), 0)
            as sales_amount_{{ hours }}h,
        {% endfor %}
        count(*) as pane_count

    from panes_placed

    group by 1, 2

)

select * from dish_windows
