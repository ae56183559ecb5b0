select
    q.w0 as w0, q.low as low, q.low as high, q.low as has_null, q.`größe` as q, q.`größe` as t, q._weight as l, q._weight as r,
    q._weight as s, q._weight as v, q.w0 as __clock__, q._weight as _weight, count(*) as _old_count, sum(q.amount) as _new_count
from {{ source('shop', 'sales') }} as q
group by q.w0, q.low, q.`größe`, q._weight
