select distinct shop_id, product_id from {{ source('raw', 'sales') }}
