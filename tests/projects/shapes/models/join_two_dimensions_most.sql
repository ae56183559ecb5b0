select sh.region, p.category, max(s.amount) as most
from {{ source('raw', 'sales') }} as s
join {{ source('raw', 'shops') }} as sh on s.shop_id = sh.shop_id
join {{ source('raw', 'products') }} as p on s.product_id = p.product_id
group by sh.region, p.category
