select sale_count, count(*) as shop_count, max(amount) as most
from (select shop_id, count(*) as sale_count, sum(coalesce(amount, 0)) as amount from {{ source('raw', 'sales') }} group by shop_id)
group by sale_count
