select sale_id, amount from {{ source('raw', 'sales') }}
where product_id in (select product_id from {{ source('raw', 'products') }} where category = 'food')
