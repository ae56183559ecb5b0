select region, shop_name, count(*) as shop_count from {{ source('raw', 'shops') }} group by rollup (region, shop_name)
