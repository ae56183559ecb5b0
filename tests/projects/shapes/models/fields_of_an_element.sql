with line as (
    select sale_id, shop_id, line.product_id, line
    from {{ source('raw', 'sales') }} lateral view explode(lines) line as line
)

select line.shop_id, line.product_id, max(line.quantity) as most, count(*) as sales
from line
where line.quantity > 0
group by line.shop_id, line.product_id
