select shop_id, date_trunc('day', sold_at) as sold_day, count(*) as sale_count, sum(coalesce(amount, 0)) as amount from {{ source('raw', 'sales') }} group by shop_id, date_trunc('day', sold_at)
