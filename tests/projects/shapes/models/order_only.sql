select shop_id, region from {{ source('raw', 'shops') }} order by region, shop_id
