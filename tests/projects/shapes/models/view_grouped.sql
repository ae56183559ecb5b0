{{ config(materialized='view') }}

select shop_id, count(*) as sale_count, sum(amount) as amount from {{ ref('viewed_sales') }} group by shop_id
