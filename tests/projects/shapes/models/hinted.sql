select /*+ broadcast(sh) */ s.sale_id, sh.region from {{ source('raw', 'sales') }} as s join {{ source('raw', 'shops') }} as sh on s.shop_id = sh.shop_id
