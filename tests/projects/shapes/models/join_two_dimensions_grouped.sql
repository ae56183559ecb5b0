select h.region, p.category, count(*) as sale_count, sum(s.amount) as amount
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
left join {{ source('raw', 'products') }} as p on s.product_id = p.product_id
group by h.region, p.category
