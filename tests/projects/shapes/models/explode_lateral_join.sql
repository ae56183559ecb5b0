select s.sale_id, positions.position, letters.letter
from {{ source('raw', 'sales') }} as s
left join lateral posexplode(s.tags) as positions(position, tag) on true, lateral explode(split(positions.tag, '')) as letters(letter)
