{{ config(materialized='view') }}

select
    sale_id,
    shop_id,
    amount,
    sold_at

from {{ source('shop', 'sales') }}
