select
    member_id, charge_id,
    max(amount) over (
        partition by member_id order by charged_at rows between 1 preceding and 1 following
    ) as highest_near,
    ntile(2) over (partition by member_id order by charged_at) as half
from {{ source('raw', 'charges') }}
