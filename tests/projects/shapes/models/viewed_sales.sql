{{ config(materialized='view') }}

select sale_id, shop_id, amount, sold_at, coalesce(quantity, 0) as quantity from {{ source('raw', 'sales') }} where amount is not null
