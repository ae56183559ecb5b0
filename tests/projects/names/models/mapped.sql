select `größe.id`, map('Key', ShopId, 'key', `größe`) as M from {{ source('shop', 'sales') }}
