select
    sale_id,
    shop_id,
    sold_at,
    to_variant_object(named_struct('quantity', quantity, 'tags', tags, 'lines', lines)) as line,
    try_parse_json(concat('{"weight": ', weight, ', "at": "', sold_at, '"}')) as parsed
from {{ source('raw', 'sales') }}
