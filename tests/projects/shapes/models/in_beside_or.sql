select sale_id, amount,
    case when shop_id in (select shop_id from {{ source('raw', 'visits') }} where seconds > 30) then 'seen' end as seen
from {{ source('raw', 'sales') }}
where quantity > 2 or (amount > 5 and product_id in (select product_id from {{ source('raw', 'products') }} where category = 'food'))
