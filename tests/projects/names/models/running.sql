select `größe.id`, ShopID as `Group`, soldat as `Timestamp`, upper(`größe`) as `GRÖSSE`,
    sum(amount) over (partition by shopid order by soldat range between interval 1 hour preceding and current row) as `Order`,
    count(*) over (partition by shopid order by soldat range between interval 30 minutes preceding and current row) as `COUNT`
from {{ source('shop', 'sales') }}
