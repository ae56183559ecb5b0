select sale_id, quantity, count(*) over (
    partition by shop_id order by quantity asc range between 1 preceding and 1 following
) as near_count
from {{ source('raw', 'sales') }}
