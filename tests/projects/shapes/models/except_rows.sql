select shop_id, customer_id from {{ source('raw', 'sales') }}
except
select shop_id, customer_id from {{ source('raw', 'visits') }}
