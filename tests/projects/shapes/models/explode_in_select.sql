with lines as (
    select sale_id, shop_id, explode(lines) as line from {{ source('raw', 'sales') }}
)

select sale_id, shop_id, line.product_id, line.quantity from lines
