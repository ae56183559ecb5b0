select shop_id, max(amount) as best, count(*) as hour_count from {{ ref('hours_running') }} group by shop_id
