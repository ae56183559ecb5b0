select s.sale_id, tags.tag, places.place
from {{ source('raw', 'sales') }} as s
left join lateral (select explode(s.tags) as tag) as tags on true, lateral (select explode(sequence(1, s.quantity))) as places(place)
where s.quantity > 0
