select shop_id, count(*) as sale_count, sum(doubled) as doubled from {{ ref('viewed_views') }} group by shop_id
