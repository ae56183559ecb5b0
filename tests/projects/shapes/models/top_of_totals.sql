with totals as (
    select shop_id, product_id, count(*) as sale_count, sum(coalesce(quantity, 0)) as quantity
    from {{ source('raw', 'sales') }}
    group by shop_id, product_id
)

select * from (
    select totals.*, row_number() over (partition by shop_id order by quantity desc, product_id asc) as position
    from totals
)
where position <= 2
