select `größe.id`, ShopID as `Group`, soldat as `Timestamp`, max(amount) over (partition by shopid order by soldat range between interval 1 hour preceding and current row) as `Order`
from {{ source('shop', 'sales') }}
