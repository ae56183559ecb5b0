select
    sale_id,
    shop_id,
    size(collect_set(product_id) over (partition by shop_id order by sold_at asc)) as products_so_far,
    size(filter(collect_list(quantity) over (partition by shop_id), q -> q > 2)) as large_sales,
    collect_list(customer_id) over (partition by shop_id order by sold_at asc, sale_id asc) as customers_so_far
from {{ source('raw', 'sales') }}
