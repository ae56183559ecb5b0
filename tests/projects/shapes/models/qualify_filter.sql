select * from (
    select customer_id, shop_id, count(*) as sale_count, dense_rank() over (partition by customer_id order by count(*) desc) as position
    from {{ source('raw', 'sales') }}
    group by customer_id, shop_id
)
where position = 1
