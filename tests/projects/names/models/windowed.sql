select S.`shopId` as `Select`, count(*) as `From`, sum(s.`AMOUNT`) as `Where`
from {{ source('shop', 'sales') }} as s
where s.SoldAt >= (select c.AS_OF - interval 1 hour from {{ source('livemart', 'clock') }} as c)
    and s.soldat < (select C.as_of from {{ source('livemart', 'clock') }} as c)
group by 1
