select * from (select shop_id, quantity, amount from {{ source('raw', 'sales') }})
pivot (sum(amount) as amount for quantity in (1 as one, 2 as two, 3 as three))
