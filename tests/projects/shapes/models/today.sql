select sale_id, sold_at from {{ source('raw', 'sales') }} where cast(sold_at as date) <= current_date()
