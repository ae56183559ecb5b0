select sale_id, amount - (select max(amount) from {{ source('raw', 'sales') }}) as below_most from {{ source('raw', 'sales') }}
