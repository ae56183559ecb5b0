select sale_id, amount
from {{ source('raw', 'sales') }}
where product_id = (select min(product_id) from {{ source('raw', 'products') }} where product_id = 'p1')
    or shop_id <> (select shop_id from {{ source('raw', 'shops') }} where shop_id = 's1')
    or amount > (select max(amount) from {{ source('raw', 'sales') }} where shop_id = 's2' group by shop_id)
