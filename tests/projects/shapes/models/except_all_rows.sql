select shop_id from {{ source('raw', 'visits') }}
except all
select shop_id from {{ source('raw', 'sales') }}
