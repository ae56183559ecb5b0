select
    shop_id,
    count(*) as sale_count,
    sum(variant_get(line, '$.quantity', 'int')) as quantity,
    max(variant_get(parsed, '$.weight', 'double')) as most
from {{ ref('variant_stored') }}
group by shop_id
