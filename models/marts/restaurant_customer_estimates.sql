{% set precision = var('sketch_precision') %}

with

customer_hours as (

    select * from {{ ref('int_customer_hours_sketched') }}

),

customer_windows as (

    {% for hours in var('sketch_window_hours') %}
    select
        restaurant_id,
        {{ hours }} as window_hours,
        hll_sketch_estimate(hll_union_agg(customer_sketch))
            as estimated_customers

    from customer_hours

    {# whole hours: the newest ended at as_of or before, the oldest started
       after the hour before the window #}
    where
        hour_started_at > {{ window_start(hours + 1) }}
        and hour_started_at <= {{ window_start(1) }}

    group by 1, 2

    {% if not loop.last %}union all{% endif %}
    {% endfor %}

),

customer_estimates as (

    select
        ---------- ids
        restaurant_id,

        ---------- numerics
        window_hours,
        estimated_customers,
        cast(
            {{ (1.04 / 2 ** (precision / 2)) | round(4, 'ceil') }}
            as decimal(5, 4)
        ) as relative_standard_error

    from customer_windows

)

select * from customer_estimates
