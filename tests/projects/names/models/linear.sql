select
    `größe.id`, `größe` as `Größe`, shopid, `null`, `a``b` as `x``Y`, _weight, _weight as _old_count, low as _new_count,
    w0 as _sign, `it's`, `50%[x]`, q as `q`, tags
from {{ source('shop', 'sales') }}
where `Null` is not null
