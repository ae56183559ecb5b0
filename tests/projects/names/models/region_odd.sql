select `İd` as `İD`, `it's`, `日本` as `日本語`, `a``b`, max(Amount) as `Case` from {{ source('shop', 'sales') }} group by `İd`, `it's`, `日本`, `a``b`
