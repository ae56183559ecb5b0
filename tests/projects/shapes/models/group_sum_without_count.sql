select shop_id, sum(amount) as amount from {{ source('raw', 'sales') }} group by shop_id
