select tier_before, count(*) as changes
from (
    select lag(tier) over (partition by member_id order by changed_at) as tier_before
    from {{ source('raw', 'changes') }}
) as steps
group by tier_before
