select s.sale_id, h.region, sum(s.amount) over (
    partition by h.region order by s.sold_at asc range between interval 1 hour preceding and current row
) as region_amount
from {{ source('raw', 'sales') }} as s
left join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
