with ranks as (
    select sale_id, rank() over (partition by shop_id order by amount desc) as place from {{ source('raw', 'sales') }}
    union
    select sale_id, -rank() over (partition by customer_id order by amount) as place from {{ source('raw', 'sales') }}
)
select place, count(*) as sale_count from ranks group by place
