select sale_id, upper(shop_id) as shop_id, amount * quantity as total
from {{ source('raw', 'sales') }}
where amount > 5 or quantity is null
