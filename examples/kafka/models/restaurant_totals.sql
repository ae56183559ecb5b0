with

order_totals as (

    select * from {{ ref('order_totals') }}

),

restaurants_totaled as (

    select
        ---------- ids
        restaurant_id,

        ---------- strings
        currency_code,

        ---------- numerics
        count(*) as order_count,
        sum(if(status = 'cancelled', 1, 0)) as cancelled_count,
        sum(if(status = 'cancelled', 0, order_amount)) as order_amount

    from order_totals

    group by 1, 2

)

select * from restaurants_totaled
