select shop_id, percentile(quantity, 0.5) as middle_quantity, count(*) as sale_count from {{ source('raw', 'sales') }} group by shop_id
