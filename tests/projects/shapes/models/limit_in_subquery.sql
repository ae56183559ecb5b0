select v.shop_id, v.visited_at, t.n
from {{ source('raw', 'visits') }} as v
inner join (
    select shop_id, count(*) as n from {{ source('raw', 'sales') }} group by 1 order by n desc, shop_id asc limit 2
) as t on v.shop_id = t.shop_id
