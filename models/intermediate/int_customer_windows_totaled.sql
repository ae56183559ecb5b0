{# A count per customer is additive, a count of distinct customers is not: this
   model takes leaving orders away, and the next one counts its rows. #}
{{ config(partition_by=['window_hours']) }}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

customer_windows as (

    {% for hours in var('window_hours') %}
    {% for window_kind, starts_at, ends_at in [
        ('current', window_start(hours), as_of()),
        ('compared', window_start(hours), whole_panes_end(0)),
        ('last_week', window_start(hours + 168), whole_panes_end(168)),
    ] %}
    select
        restaurant_id,
        customer_id,
        {{ hours }} as window_hours,
        '{{ window_kind }}' as window_kind,
        count(*) as order_count

    from orders

    where
        ordered_at >= {{ starts_at }}
        and ordered_at < {{ ends_at }}
        and customer_id is not null

    group by 1, 2, 3, 4

    {% if not loop.last %}union all{% endif %}
    {% endfor %}
    {% if not loop.last %}union all{% endif %}
    {% endfor %}

)

select * from customer_windows
