{# One row holds all windows of a restaurant: a refresh passes over its panes
   once, where a union of windows would ask Spark for each of them. #}
{% set windows = {
    'current': 'is_current_{0}h',
    'previous': 'is_in_two_{0}h and not is_current_{0}h',
    'compared': 'is_current_{0}h and is_whole',
    'last_week': 'is_since_last_week_{0}h and is_until_last_week',
} %}

with

order_panes as (

    select * from {{ ref('int_order_panes_totaled') }}

),

panes_placed as (

    select
        restaurant_id,
        order_count,
        sales_amount,
        {% for hours in var('window_hours') %}
        pane_started_at >= {{ window_start(hours) }}
            as is_current_{{ hours }}h,
        pane_started_at >= {{ window_start(hours * 2) }}
            as is_in_two_{{ hours }}h,
        pane_started_at >= {{ window_start(hours + 168) }}
            as is_since_last_week_{{ hours }}h,
        {% endfor %}
        pane_started_at < {{ whole_panes_end(0) }} as is_whole,
        pane_started_at < {{ whole_panes_end(168) }} as is_until_last_week

    from order_panes

    where {{ in_any_window('pane_started_at') }}

),

order_windows as (

    select
        restaurant_id,
        {% for kind, is_inside in windows.items() %}
        {% for hours in var('window_hours') %}
        {% set is_inside_hours = is_inside.format(hours) %}
        coalesce(sum(case when {{ is_inside_hours }} then order_count end), 0)
            as {{ kind }}_order_count_{{ hours }}h,
        coalesce(sum(case when {{ is_inside_hours }} then sales_amount end), 0)
            as {{ kind }}_sales_amount_{{ hours }}h,
        {% endfor %}
        {% endfor %}
        count(*) as pane_count

    from panes_placed

    group by 1

)

select * from order_windows
