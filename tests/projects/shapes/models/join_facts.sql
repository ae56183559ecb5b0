select s.sale_id, r.refund_id, s.amount, r.refund, s.sold_at, r.refunded_at
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'refunds') }} as r on s.sale_id = r.sale_id
