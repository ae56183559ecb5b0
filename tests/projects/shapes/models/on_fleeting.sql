select customer_id, sold_hour, count(*) as sale_count, max(amount) as most from {{ ref('fleeting') }} group by customer_id, sold_hour
