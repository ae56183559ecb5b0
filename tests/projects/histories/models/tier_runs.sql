-- Changes in a row that left the tier as it was.
select member_id, tier, run, count(*) as changes, min(changed_at) as began_at
from (
    select
        *,
        row_number() over (partition by member_id order by changed_at)
        - row_number() over (partition by member_id, tier order by changed_at) as run
    from {{ source('raw', 'changes') }}
) as numbered
group by member_id, tier, run
