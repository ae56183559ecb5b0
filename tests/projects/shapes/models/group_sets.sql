select shop_id, array_join(sort_array(collect_set(product_id)), ',') as products, array_join(sort_array(collect_list(customer_id)), ',') as customers
from {{ source('raw', 'sales') }}
group by shop_id
