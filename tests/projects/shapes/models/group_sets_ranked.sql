select
    coalesce(h.region, 'all') as region, h.shop_name, sum(s.amount) as amount, grouping(h.region) + grouping(h.shop_name) as level,
    rank() over (partition by grouping(h.region) + grouping(h.shop_name) order by sum(s.amount) desc, count(*)) as place
from {{ source('raw', 'sales') }} as s
left join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
group by h.region, h.shop_name with rollup
