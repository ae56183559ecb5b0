select distinct member_id, min(changed_at) over (partition by member_id) as first_seen_at
from {{ source('raw', 'changes') }}
