{# Returns the restaurants that lack a window, or have one too many. #}
select
    restaurants.restaurant_id,
    count(metrics.window_hours) as window_count

from {{ ref('stg_ordering__restaurants') }} as restaurants

left join {{ ref('restaurant_order_metrics') }} as metrics
    on restaurants.restaurant_id = metrics.restaurant_id

group by 1

having count(metrics.window_hours) <> {{ var('window_hours') | length }}
