select sum(s.amount) * 2 as Twice, sum(case when h.shop_name is null then s.quantity end) / count(*) as share, 'all' as which
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'shops') }} as h on s.shop_id = h.shop_id
