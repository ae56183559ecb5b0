select
    sale_id,
    amount * 2 as doubled,
    doubled + 1 as more,
    coalesce(more, 0) > 50 as is_large
from {{ source('raw', 'sales') }}
