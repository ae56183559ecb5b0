select p.id, p.name, p.started_at
from (
    select id, name, window(date_time, '10 minutes').start as started_at
    from {{ source('nexmark', 'person') }}
    group by id, name, window(date_time, '10 minutes')
) as p
inner join (
    select seller, window(date_time, '10 minutes').start as started_at
    from {{ source('nexmark', 'auction') }}
    group by seller, window(date_time, '10 minutes')
) as a on p.id = a.seller and p.started_at = a.started_at
