select window.start as hour_started_at, count(*) as sale_count, max(amount) as most from {{ source('raw', 'sales') }} group by window(sold_at, '1 hour')
