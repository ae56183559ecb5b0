select member_id, place, tier, changed_at
from (
    select *, row_number() over (partition by member_id order by changed_at desc) as place
    from {{ source('raw', 'changes') }}
) as ranked
where place <= 2
