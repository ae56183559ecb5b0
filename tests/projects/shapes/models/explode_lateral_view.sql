select sale_id, sold_at, tag
from {{ source('raw', 'sales') }}
lateral view explode(tags) exploded as tag
