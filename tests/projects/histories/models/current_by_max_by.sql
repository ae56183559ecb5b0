select member_id, max_by(tier, changed_at) as tier, max(changed_at) as changed_at, count(*) as changes
from {{ source('raw', 'changes') }}
group by member_id
