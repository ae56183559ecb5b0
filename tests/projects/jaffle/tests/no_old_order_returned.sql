select * from {{ ref('old_orders') }} where status = 'returned'
