{# A count per customer is additive, a count of distinct customers is not: this
   model takes leaving orders away, and the next one counts its rows. #}
{{ config(partition_by=['window_hours']) }}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

customer_windows as (

    {% for hours in var('window_hours') %}
    select
        restaurant_id,
        customer_id,
        {{ hours }} as window_hours,
        count(*) as order_count

    from orders

    where
        ordered_at >= {{ window_start(hours) }}
        and ordered_at < {{ as_of() }}
        and customer_id is not null

    group by 1, 2, 3

    {% if not loop.last %}union all{% endif %}
    {% endfor %}

)

select * from customer_windows
