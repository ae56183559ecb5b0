with Sold as (select sale_id, amount from {{ source('raw', 'sales') }} where amount > 1)

select sale_id, amount from sold
