select shopid as CustomerKey, `größe`, count(*) as N, sum(amount) as `Order` from {{ source('shop', 'sales') }} group by shopid, `größe`
