select `shop name` as ShopName, `A.b C` as `A.b`, count(*) as N, sum(`İ (total)`) as `İ` from {{ ref('spaced') }} group by `shop name`, `a.B c`
