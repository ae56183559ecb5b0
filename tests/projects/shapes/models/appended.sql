{{ config(materialized='incremental', incremental_strategy='merge', unique_key='sale_id') }}

select sale_id, shop_id, amount, sold_at
from {{ source('raw', 'sales') }}

{% if is_incremental() %}
where sold_at > (select max(sold_at) from {{ this }})
{% endif %}
