select shop_id, quantity, count(*) as sale_count from {{ source('raw', 'sales') }} group by all
