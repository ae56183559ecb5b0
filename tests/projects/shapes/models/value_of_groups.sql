with totals as (select shop_id, sum(amount) as total, count(*) as n from {{ source('raw', 'sales') }} group by shop_id)

select h.shop_name, t.total, t.n
from {{ source('raw', 'shops') }} as h
left join totals as t on h.shop_id = t.shop_id
where t.n >= (select 0.5 * max(n) from totals) or t.n is null
