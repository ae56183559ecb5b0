select shop_id, bool_or(amount > 30) as has_large, bool_and(quantity > 0) as all_positive, count_if(amount is null) as unknown_count, count(*) filter (where quantity > 1) as several_count
from {{ source('raw', 'sales') }}
group by shop_id
