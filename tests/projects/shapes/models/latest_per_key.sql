select sale_id, customer_id, shop_id, amount from (
    select *, row_number() over (partition by customer_id order by sold_at desc, sale_id asc) as position
    from {{ source('raw', 'sales') }}
)
where position = 1
