select coalesce(a.shop_id, b.shop_id) as shop_id, a.sale_count, b.visit_count
from (select shop_id, count(*) as sale_count from {{ source('raw', 'sales') }} group by shop_id) as a
full outer join (select shop_id, count(*) as visit_count from {{ source('raw', 'visits') }} group by shop_id) as b
    on a.shop_id = b.shop_id
