select
    count(*) as sale_count,
    count(distinct customer_id) as customers,
    count(distinct weight) filter (where amount > 10) as weights,
    count(distinct case when quantity > 2 then upper(shop_id) end) * 2 as shops
from {{ source('raw', 'sales') }}
union all
select count(distinct refund), count(distinct sale_id), 0, 0 from {{ source('raw', 'refunds') }}
