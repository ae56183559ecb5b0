select shop_id, count(*) as sale_count, sum(weight) as weight, avg(weight) as average_weight from {{ source('raw', 'sales') }} group by shop_id
