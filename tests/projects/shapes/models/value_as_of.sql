select
    r.refund_id,
    (
        select max_by(s.amount, struct(s.sold_at, s.sale_id)) from {{ source('raw', 'sales') }} as s
        where s.sale_id = r.sale_id and s.sold_at <= r.refunded_at
    ) as amount_before
from {{ source('raw', 'refunds') }} as r
