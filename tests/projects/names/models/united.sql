select `KEY` as `Key`, count(*) as `Count_`, max(`At`) as `at` from (
    select ShopId as `Key`, SoldAt as `At` from {{ source('shop', 'sales') }}
    union all
    select SHOPID as `other`, `timestamp` as `AT` from {{ source('shop', 'visits') }}
) as `u n` group by `key`
