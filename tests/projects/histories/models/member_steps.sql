-- What came next, and which step it was.
select
    member_id, change_id, tier,
    lead(tier) over (partition by member_id order by changed_at) as next_tier,
    lag(city, 1, 'nowhere') over (partition by member_id order by changed_at) as city_before,
    row_number() over (partition by member_id order by changed_at) as step
from {{ source('raw', 'changes') }}
