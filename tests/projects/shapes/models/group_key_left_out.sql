select count(*) as sale_count, sum(coalesce(quantity, 0)) as quantity from {{ source('raw', 'sales') }} group by shop_id
