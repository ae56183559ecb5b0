select shop_id, date_trunc('hour', sold_at) as hour_started_at, count(*) as sale_count, sum(coalesce(amount, 0)) as amount from {{ source('raw', 'sales') }} group by 1, 2
