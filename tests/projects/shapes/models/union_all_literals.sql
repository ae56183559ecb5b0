select 'sale' as kind, shop_id, sold_at as happened_at, amount from {{ source('raw', 'sales') }}
union all
select 'visit' as kind, shop_id, visited_at as happened_at, cast(null as decimal(12, 2)) as amount from {{ source('raw', 'visits') }}
