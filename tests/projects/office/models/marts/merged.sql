{{ config(materialized='incremental', incremental_strategy='merge', unique_key='code', on_schema_change='append_new_columns') }}
select code, amount from {{ ref('bookings') }}
{% if is_incremental() %} where amount > (select max(amount) from {{ this }}) {% endif %}
