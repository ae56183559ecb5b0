select coalesce(a.shop_id, b.shop_id) as shop_id, a.n as sales, b.n as visits
from (select shop_id, count(*) as n from {{ source('raw', 'sales') }} group by 1) as a
full outer join (select shop_id, count(*) as n from {{ source('raw', 'visits') }} group by 1) as b on a.shop_id = b.shop_id
