select S.item.`größe` as `Größe`, count(distinct x.shopid) as n
from {{ source('shop', 'sales') }} as x lateral view explode(x.tags) s as item
group by s.item.`größe`
