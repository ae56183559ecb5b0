select p.name, a.item_name, b.price
from {{ source('nexmark', 'bid') }} as b
inner join {{ source('nexmark', 'auction') }} as a on b.auction = a.id
inner join {{ source('nexmark', 'person') }} as p on p.id = a.seller
where a.category = 10 and p.state in ('OR', 'ID', 'CA')
