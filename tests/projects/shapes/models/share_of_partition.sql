select sale_id, shop_id, amount, sum(amount) over (partition by shop_id) as shop_amount, count(*) over () as all_count from {{ source('raw', 'sales') }}
