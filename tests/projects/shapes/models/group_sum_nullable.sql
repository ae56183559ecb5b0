select shop_id, count(*) as sale_count, sum(amount) as amount from {{ source('raw', 'sales') }} group by shop_id
