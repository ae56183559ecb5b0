select s.`größe.id` as `größe.id`, g.`order` as `End`, s.amount as `Amount`, g.customerkey as `CUSTOMERkey`
from {{ source('shop', 'sales') }} as s left join {{ ref('groups') }} as g on s.ShopID = g.CustomerKEY and s.`größe` = g.`größe`
