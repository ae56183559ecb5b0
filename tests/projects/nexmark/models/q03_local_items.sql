select p.name, p.city, p.state, a.id
from {{ source('nexmark', 'auction') }} as a
inner join {{ source('nexmark', 'person') }} as p on a.seller = p.id
where a.category = 10 and p.state in ('OR', 'ID', 'CA')
