select line.product_id, count(*) as line_count, sum(line.quantity) as quantity
from (select explode(lines) as line from {{ source('raw', 'sales') }})
group by line.product_id
