select sale_id, count(*) over recent as sale_count, sum(quantity) over recent as quantity
from {{ source('raw', 'sales') }}
window recent as (partition by shop_id order by sold_at asc range between interval 1 hour preceding and current row)
