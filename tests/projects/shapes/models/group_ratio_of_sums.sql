select shop_id, count(*) as sale_count, sum(amount) / sum(quantity) as price, round(avg(amount), 1) as rounded
from {{ source('raw', 'sales') }}
group by shop_id
