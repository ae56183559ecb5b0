select cast(sold_at as date) as sold_on, count(*) as sale_count, max(amount) as most from {{ source('raw', 'sales') }} group by cast(sold_at as date)
