select
    sale_id,
    element
from {{ ref('variant_stored') }}
lateral view explode(variant_get(line, '$.tags', 'array<variant>')) tags as element
