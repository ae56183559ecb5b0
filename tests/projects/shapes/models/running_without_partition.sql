select sale_id, sold_at, sum(amount) over (
    order by sold_at asc range between interval 1 hour preceding and current row
) as amount
from {{ source('raw', 'sales') }}
