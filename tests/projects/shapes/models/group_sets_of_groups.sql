with parts as (
    select 'sold' as kind, shop_id, count(*) as n from {{ source('raw', 'sales') }} group by shop_id
    union all
    select 'refunded', s.shop_id, count(*) from {{ source('raw', 'refunds') }} as r
    inner join {{ source('raw', 'sales') }} as s on r.sale_id = s.sale_id group by s.shop_id
)
select kind, shop_id, sum(n) as n from parts group by rollup (kind, shop_id)
