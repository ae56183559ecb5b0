select shop_id, count(*) as visit_count, sum(coalesce(seconds, 0)) as seconds from {{ source('raw', 'visits') }} group by shop_id
