select shop_id, count(*) as n
from (select shop_id from {{ source('raw', 'sales') }} union all select 's1' as shop_id) as u
group by shop_id
