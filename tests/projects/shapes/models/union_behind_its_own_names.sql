with sold as (

    select shop_id, quantity from {{ source('raw', 'sales') }}

),

figures as (

    with shops as (select shop_id, sum(quantity) as quantity, count(*) as n from sold group by shop_id)

    select 'all' as which, sum(quantity) as quantity from shops
    union all
    select 'most', max(quantity) from shops

)

select which, quantity from figures where quantity > 1
