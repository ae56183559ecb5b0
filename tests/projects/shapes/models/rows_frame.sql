select sale_id, shop_id, sum(amount) over (
    partition by shop_id order by sold_at asc, sale_id asc rows between 2 preceding and 1 following
) as amount
from {{ source('raw', 'sales') }}
