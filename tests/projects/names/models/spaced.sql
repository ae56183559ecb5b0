{{ config(materialized='view') }}
select ShopId as `Shop Name`, `größe` as `a.b c`, Amount as `İ (total)`, `null` as `null` from {{ source('shop', 'sales') }}
