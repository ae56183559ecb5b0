-- Orders that count: a canceled one leaves every total again.
select
    order_id,
    shop_id,
    product_id,
    quantity,
    amount,
    ordered_at

from {{ source('shop', 'orders') }}

where status <> 'cancelled'
