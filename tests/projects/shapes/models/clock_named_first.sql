with parameters as (select date_trunc('hour', {{ as_of() }}) as hour_started_at)
select s.sale_id, s.sold_at, p.hour_started_at
from parameters as p, {{ source('raw', 'sales') }} as s
where s.sold_at >= p.hour_started_at - interval 1 hour
