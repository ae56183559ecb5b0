with sales as (select sale_id, amount from {{ source('raw', 'sales') }} where amount > 3)

select sales.sale_id, sales.amount from sales
