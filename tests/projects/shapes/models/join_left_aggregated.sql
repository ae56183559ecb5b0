select h.shop_id, h.shop_name, coalesce(t.sale_count, 0) as sale_count, t.amount
from {{ source('raw', 'shops') }} as h
left join (
    select shop_id, count(*) as sale_count, sum(amount) as amount from {{ source('raw', 'sales') }} group by shop_id
) as t on h.shop_id = t.shop_id
