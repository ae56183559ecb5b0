select count(*) as pairs, count(customer_id) as customers
from (
    (select distinct shop_id, customer_id from {{ source('raw', 'sales') }})
    except
    (select shop_id, customer_id from {{ source('raw', 'visits') }})
) as unseen
