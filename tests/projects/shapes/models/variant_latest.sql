select
    shop_id,
    sale_id,
    line,
    parsed
from {{ ref('variant_stored') }}
qualify row_number() over (partition by shop_id order by sold_at desc nulls last, sale_id) = 1
