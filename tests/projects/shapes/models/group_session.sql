select shop_id, session.start as session_started_at, session.end as session_ended_at, visit_count
from (
    select shop_id, session_window(visited_at, '15 minutes') as session, count(*) as visit_count
    from {{ source('raw', 'visits') }}
    group by shop_id, session_window(visited_at, '15 minutes')
)
