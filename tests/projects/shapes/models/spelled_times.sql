select 'sale' as kind, sale_id, sold_at as happened_at from {{ source('raw', 'sales') }}
where sold_at < (select as_of from {{ source('livemart', 'clock') }}) - interval 1 hour
union all
select kind, name, happens_at
from (
    select 'promotion' as kind, name, happens_at
    from (values ('a', timestamp '2026-03-01 12:02:00'), ('b', timestamp '2026-03-01 12:31:00'), ('c', timestamp '2026-03-01 14:00:00'), ('d', timestamp '2026-11-01 07:03:00'), ('e', timestamp '2026-11-01 08:00:00')) as promotions(name, happens_at)
)
where happens_at <= (select as_of from {{ source('livemart', 'clock') }})
