select `null`, count(distinct amount) as `Distinct` from {{ source('shop', 'sales') }} group by `null`
