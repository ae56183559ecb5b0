select s.shopid as `ShopId`, `T g`.`Tág`.`größe` as `größe`, count(*) as n, sum(`T g`.`tág`.`ORDER`) as `order`
from {{ source('shop', 'sales') }} as s lateral view explode(s.tags) `T g` as `Tág`
group by s.shopid, `T g`.`Tág`.`größe`
