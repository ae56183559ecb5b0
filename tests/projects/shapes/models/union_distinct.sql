select shop_id, customer_id from {{ source('raw', 'sales') }}
union
select shop_id, customer_id from {{ source('raw', 'visits') }}
