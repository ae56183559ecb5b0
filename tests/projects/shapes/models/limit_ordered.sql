select sale_id, amount from {{ source('raw', 'sales') }} order by amount desc nulls last, sale_id asc limit 5
