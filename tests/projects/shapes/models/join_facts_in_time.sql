select s.sale_id, r.refund_id, r.refund
from {{ source('raw', 'sales') }} as s
inner join {{ source('raw', 'refunds') }} as r
    on s.sale_id = r.sale_id
    and r.refunded_at between s.sold_at and s.sold_at + interval 2 hours
