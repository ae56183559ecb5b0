select
    sale_id,
    customer_id as shop_id,
    count(*) over (partition by shop_id) as sales_of_the_stored_shop,
    quantity + 1 as quantity,
    quantity * 10 as of_the_stored_quantity
from {{ source('raw', 'sales') }}
