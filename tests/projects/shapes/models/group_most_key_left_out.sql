with days as (select max(amount) as most, min(sold_at) as began_at from {{ source('raw', 'sales') }} group by shop_id, date(sold_at))
select most, began_at, most > 10 as is_high from days
