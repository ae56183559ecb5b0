select shop_id, count(*) as sale_count, sum(coalesce(amount, 0)) as amount from {{ ref('appended') }} group by shop_id
