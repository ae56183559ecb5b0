with ranked as (
    select shop_id, sum(quantity) as sold, rank() over (order by sum(quantity) desc) as place
    from {{ source('raw', 'sales') }}
    group by shop_id
    order by sum(quantity) desc nulls last, shop_id
    limit 3
)

select shop_id, sold, place from ranked
