with

order_totals as (

    select * from {{ ref('order_totals') }}

),

customers as (

    select * from {{ source('shop', 'customers') }}

),

cities_totaled as (

    select
        ---------- strings
        customers.city,

        ---------- numerics
        count(*) as order_count,
        sum(order_totals.order_amount) as order_amount

    from order_totals

    inner join customers on order_totals.customer_id = customers.customer_id

    group by 1

)

select * from cities_totaled
