with parameters as (select cast({{ as_of() }} as date) as today)
select shop_id, max(amount) as most from {{ source('raw', 'sales') }} where date(sold_at) >= (select today from parameters) group by shop_id
