select shop_id, product_id, count(*) as sale_count, sum(coalesce(quantity, 0)) as quantity from {{ source('raw', 'sales') }} group by shop_id, product_id
