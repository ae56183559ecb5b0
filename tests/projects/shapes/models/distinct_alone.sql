select count(distinct customer_id) as customers, count(distinct weight) * 2 as weights
from {{ source('raw', 'sales') }}
where quantity > 1
