select
    s.customer_id, coalesce(p.region, 'none') as region, min(s.amount) as least,
    row_number() over (partition by s.customer_id order by min(s.amount), coalesce(p.region, 'none')) as place,
    avg(count(*)) over w as usual
from {{ source('raw', 'sales') }} as s left join {{ source('raw', 'shops') }} as p on s.shop_id = p.shop_id
group by s.customer_id, coalesce(p.region, 'none')
window w as (partition by coalesce(p.region, 'none'))
qualify place < 4
