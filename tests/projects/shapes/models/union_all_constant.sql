select shop_id, region from {{ source('raw', 'shops') }}
union all
select 'none' as shop_id, 'nowhere' as region
