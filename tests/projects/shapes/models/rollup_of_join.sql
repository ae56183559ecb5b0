select h.shop_name as Shop, s.quantity, count(distinct s.sale_id) as n, max(s.amount) as most, grouping(s.quantity) as g
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
group by rollup (h.shop_name, s.quantity)
