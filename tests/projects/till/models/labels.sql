{{ config(materialized='view') }}
select method, label from {{ source('lists', 'methods') }}
