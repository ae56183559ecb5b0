{# Returns the windows whose orders are not those of their customers: the two
   are added up on different ways. Orders without a customer are exempt. #}
with

customers_totaled as (

    select
        restaurant_id,
        {% for kind in ['current', 'compared', 'last_week'] %}
        {% for hours in var('window_hours') %}
        {% set order_count = kind ~ '_order_count_' ~ hours ~ 'h' %}
        sum({{ order_count }}) as {{ order_count }},
        {% endfor %}
        {% endfor %}
        sum(order_count) as order_count

    from {{ ref('int_customer_windows_totaled') }}

    group by 1

)

{% for kind in ['current', 'compared', 'last_week'] %}
{% for hours in var('window_hours') %}
{% set order_count = kind ~ '_order_count_' ~ hours ~ 'h' %}
select
    customers_totaled.restaurant_id,
    '{{ order_count }}' as measure,
    customers_totaled.{{ order_count }} as customer_order_count,
    order_windows.{{ order_count }} as window_order_count

from customers_totaled

left join {{ ref('int_order_windows_totaled') }} as order_windows
    on customers_totaled.restaurant_id = order_windows.restaurant_id

where
    customers_totaled.{{ order_count }}
    > coalesce(order_windows.{{ order_count }}, 0)

{% if not loop.last %}union all{% endif %}
{% endfor %}
{% if not loop.last %}union all{% endif %}
{% endfor %}
