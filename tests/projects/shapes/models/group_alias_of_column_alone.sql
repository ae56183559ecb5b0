select
    upper(product_id) = 'FOOD' as product_id,
    count(*) as n
from {{ source('raw', 'sales') }}
group by product_id
