select sale_id, shop_id, sold_at from {{ source('raw', 'sales') }}
where sold_at > (select as_of - interval 1 hour from {{ source('livemart', 'clock') }})
