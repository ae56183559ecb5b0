select distinct count(*) as sale_count, sum(quantity) as quantity, max(amount) as most
from {{ source('raw', 'sales') }}
group by shop_id, product_id
