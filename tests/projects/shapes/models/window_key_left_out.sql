select sale_id, rank() over (partition by customer_id, date(sold_at) order by amount) as place from {{ source('raw', 'sales') }}
