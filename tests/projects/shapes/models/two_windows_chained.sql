with running as (
    select sale_id, shop_id, product_id, sold_at, sum(quantity) over (
        partition by shop_id order by sold_at asc range between interval 1 hour preceding and current row
    ) as quantity
    from {{ source('raw', 'sales') }}
)

select sale_id, max(quantity) over (
    partition by product_id order by sold_at asc range between interval 1 hour preceding and current row
) as most
from running
