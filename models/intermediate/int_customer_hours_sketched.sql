{# A late order recomputes one sketch of one hour; nothing older is read. #}
{{ config(partition_by=['hour_date']) }}

with

orders as (

    select * from {{ ref('int_orders_accepted') }}

),

customer_hours as (

    select
        ---------- ids
        restaurant_id,

        ---------- timestamps
        date_trunc('hour', ordered_at) as hour_started_at,
        cast(date_trunc('hour', ordered_at) as date) as hour_date,

        ---------- sketches
        hll_sketch_agg(customer_id, {{ var('sketch_precision') }})
            as customer_sketch

    from orders

    where
        customer_id is not null
        and ordered_at is not null

    group by 1, 2, 3

)

select * from customer_hours
