select l.w0 as w1, a.q as a, a.low, count(distinct l.amount) as _sign
from {{ source('shop', 'sales') }} as l inner join {{ ref('helpers') }} as a on a.w0 = l.w0 and a._weight = l._weight
group by l.w0, a.q, a.low
