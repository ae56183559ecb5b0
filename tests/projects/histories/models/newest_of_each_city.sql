select member_id, city, tier
from (
    select * from {{ source('raw', 'changes') }}
    qualify row_number() over (partition by member_id, city order by changed_at desc) = 1
) as by_city
qualify row_number() over (partition by member_id order by tier) = 1
