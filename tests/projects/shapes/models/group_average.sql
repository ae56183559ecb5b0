select shop_id, count(*) as sale_count, avg(amount) as average_amount, avg(quantity) as average_quantity from {{ source('raw', 'sales') }} group by shop_id
