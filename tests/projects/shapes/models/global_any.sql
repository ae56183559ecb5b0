select any(quantity > 2) as is_any, every(quantity > 0) as is_every from {{ source('raw', 'sales') }}
