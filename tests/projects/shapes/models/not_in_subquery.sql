select sale_id, amount from {{ source('raw', 'sales') }}
where sale_id not in (select sale_id from {{ source('raw', 'refunds') }})
