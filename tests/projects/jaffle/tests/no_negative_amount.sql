{{ config(severity='warn') }}
select * from {{ ref('orders') }} where amount < 0
