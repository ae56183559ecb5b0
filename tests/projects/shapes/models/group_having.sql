select shop_id, count(*) as sale_count, sum(coalesce(amount, 0)) as amount from {{ source('raw', 'sales') }} group by shop_id having count(*) >= 3
