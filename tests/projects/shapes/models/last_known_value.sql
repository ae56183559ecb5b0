select sale_id, shop_id, last_value(amount, true) over (
    partition by shop_id order by sold_at asc, sale_id asc rows between unbounded preceding and current row
) as last_known_amount
from {{ source('raw', 'sales') }}
