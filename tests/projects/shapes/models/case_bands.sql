select
    case when amount is null then 'unknown' when amount < 10 then 'low' else 'high' end as band,
    count(*) as sale_count,
    sum(case when quantity > 2 then 1 else 0 end) as large_count
from {{ source('raw', 'sales') }}
group by 1
