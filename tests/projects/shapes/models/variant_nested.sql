select
    sales.sale_id,
    shops.shop_name,
    array(sales.line, null) as lines,
    named_struct('parsed', sales.parsed, 'region', shops.region) as place
from {{ ref('variant_stored') }} as sales
left join {{ source('raw', 'shops') }} as shops on sales.shop_id = shops.shop_id
