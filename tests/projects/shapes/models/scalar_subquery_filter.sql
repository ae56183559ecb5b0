select sale_id, amount from {{ source('raw', 'sales') }}
where amount > (select avg(list_price) from {{ source('raw', 'products') }})
