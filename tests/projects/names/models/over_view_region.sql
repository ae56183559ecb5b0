select `shop name` as ShopName, `A.b C` as `A.b`, count(distinct `null`) as N from {{ ref('spaced') }} group by `shop name`, `a.B c`
