select h.shop_id, h.shop_name
from {{ source('raw', 'shops') }} as h
inner join (select shop_id from {{ source('raw', 'visits') }} group by shop_id order by count(*) desc, shop_id asc limit 2) as t on h.shop_id = t.shop_id
