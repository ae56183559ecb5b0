select sale_id, shop_id, sold_at
from {{ source('raw', 'sales') }}
where (shop_id, sold_at) in (select shop_id, max(sold_at) from {{ source('raw', 'sales') }} group by shop_id)
