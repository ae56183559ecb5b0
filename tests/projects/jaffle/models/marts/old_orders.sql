{{ config(enabled=var('with_old_orders', false)) }}
select * from {{ ref('orders') }} where order_date < date '2020-01-01'
