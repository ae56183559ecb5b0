select shop_id, count(*) as n
from {{ source('raw', 'sales') }}
where amount > (select avg(amount) from {{ source('raw', 'sales') }})
group by 1
order by n desc, 1
limit 2
