select shop_id, amount from {{ source('raw', 'sales') }} where quantity > 1
union all
select shop_id, amount from {{ source('raw', 'sales') }} where amount > 10
