select s.sale_id, v.customer_id, v.seconds
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'visits') }} as v
    on v.visited_at > s.sold_at - interval 10 minutes and v.visited_at <= s.sold_at
