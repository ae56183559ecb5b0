select s.sale_id, sh.region, s.sold_at, sum(s.quantity) over (partition by sh.region order by s.sold_at range between interval 2 hours preceding and current row) as quantity_2h
from {{ source('raw', 'sales') }} as s
join {{ source('raw', 'shops') }} as sh on s.shop_id = sh.shop_id
