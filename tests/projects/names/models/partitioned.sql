{{ config(partition_by=['SHOPID']) }}
select `größe`, count(*) as N, ShopId from {{ source('shop', 'sales') }} group by `größe`, shopId
