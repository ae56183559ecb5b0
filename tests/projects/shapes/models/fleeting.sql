{{ config(materialized='ephemeral') }}

select customer_id, date_trunc('hour', sold_at) as sold_hour, amount from {{ source('raw', 'sales') }} where customer_id is not null
