select shop_id from {{ source('raw', 'sales') }}
intersect
select shop_id from {{ source('raw', 'shops') }}
