with touched as (
    select
        *,
        count(*) over (partition by customer_id) as total,
        row_number() over (partition by customer_id order by s.sold_at, s.sale_id) as position
    from {{ source('raw', 'sales') }} as s
    left join {{ source('raw', 'shops') }} using (shop_id)
),
points as (
    select
        sale_id, customer_id, shop_id, total, position,
        case when position = total then 1.0 when total = 1 then 0.5 else 0.2 / (total - 1) end as points,
        amount * points as credited
    from touched
)
select * from points
