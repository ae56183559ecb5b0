select shop_id as Shop_Id, sum(amount) as total, count(*) as n from {{ source('raw', 'sales') }} group by shop_id order by total desc nulls last, shop_id asc nulls first limit 2
