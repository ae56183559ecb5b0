{{ config(materialized='view') }}

select shop_id, sold_at, amount * 2 as doubled, quantity from {{ ref('viewed_sales') }} where quantity > 0
