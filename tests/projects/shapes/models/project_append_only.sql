select shop_id, seconds, date_trunc('hour', visited_at) as visited_hour from {{ source('raw', 'visits') }} where seconds > 10
