select
    shop_id as s,
    sum(quantity) as total,
    count(*) as n,
    total / n as average,
    case when average > 2 then 'many' else 'few' end as band
from {{ source('raw', 'sales') }}
group by s
