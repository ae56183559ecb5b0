select distinct
    member_id,
    first_value(city) over (
        partition by member_id order by changed_at
        rows between unbounded preceding and unbounded following
    ) as first_city
from {{ source('raw', 'changes') }}
