select shop_id, min_by(sale_id, struct(sold_at, sale_id)) as first_sale, max_by(amount, struct(sold_at, sale_id)) as last_amount from {{ source('raw', 'sales') }} group by shop_id
