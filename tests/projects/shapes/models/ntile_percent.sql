select sale_id, ntile(3) over (partition by shop_id order by sold_at asc, sale_id asc) as third, percent_rank() over (partition by shop_id order by amount asc) as place
from {{ source('raw', 'sales') }}
