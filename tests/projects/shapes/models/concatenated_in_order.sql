select shop_id, listagg(customer_id, ',') within group (order by sold_at, sale_id) as customers from {{ source('raw', 'sales') }} group by shop_id
