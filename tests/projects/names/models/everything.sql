select count(*) as `All`, sum(amount) as `and` from {{ source('shop', 'sales') }}
