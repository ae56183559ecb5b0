select shop_id, count(*) as sale_count, min(amount) as least, max(amount) as most, max(sold_at) as last_sold_at, min(product_id) as first_product
from {{ source('raw', 'sales') }}
group by shop_id
