select shop_id, count(*) as sale_count, sum(coalesce(amount, 0)) as amount, sum(coalesce(quantity, 0)) as quantity
from {{ source('raw', 'sales') }}
group by shop_id
