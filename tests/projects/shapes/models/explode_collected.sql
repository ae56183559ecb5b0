select shop_id, explode(sort_array(collect_set(product_id))) as product_id from {{ source('raw', 'sales') }} group by shop_id
