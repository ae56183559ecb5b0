select sale_id, shop_id, sold_at, sum(amount) over (
    partition by shop_id order by sold_at asc range between unbounded preceding and current row
) as amount_so_far
from {{ source('raw', 'sales') }}
