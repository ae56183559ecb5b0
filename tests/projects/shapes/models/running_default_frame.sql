select sale_id, shop_id, sum(quantity) over (partition by shop_id order by sold_at) as quantity_so_far from {{ source('raw', 'sales') }}
