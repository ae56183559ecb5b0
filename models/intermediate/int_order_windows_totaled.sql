{# One row holds all windows of a restaurant: a refresh passes over its panes
   once, where a union of windows would ask Spark for each of them. #}
{% set kinds = ['current', 'previous', 'compared', 'last_week'] %}

with

order_panes as (

    select * from {{ ref('int_order_panes_totaled') }}

),

panes_placed as (

    select
        restaurant_id,
        order_count,
        sales_amount,
        {{ window_flags('pane_started_at', kinds) }}

    from order_panes

    where {{ in_any_window('pane_started_at') }}

),

order_windows as (

    select
        restaurant_id,
        {% for kind in kinds %}
        {% for hours in var('window_hours') %}
        {% set is_inside = 'is_' ~ kind ~ '_' ~ hours ~ 'h' %}
        coalesce(sum(case when {{ is_inside }} then order_count end), 0)
            as {{ kind }}_order_count_{{ hours }}h,
        coalesce(sum(case when {{ is_inside }} then sales_amount end), 0)
            as {{ kind }}_sales_amount_{{ hours }}h,
        {% endfor %}
        {% endfor %}
        count(*) as pane_count

    from panes_placed

    group by 1

)

select * from order_windows
