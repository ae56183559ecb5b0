select shop_id, quantity, amount from {{ source('raw', 'sales') }}
