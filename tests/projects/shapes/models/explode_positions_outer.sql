select sale_id, position, tag
from {{ source('raw', 'sales') }}
lateral view outer posexplode(tags) exploded as position, tag
