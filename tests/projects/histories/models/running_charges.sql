select
    member_id, charge_id, amount,
    sum(amount) over (
        partition by member_id order by charged_at rows between unbounded preceding and current row
    ) as running_amount
from {{ source('raw', 'charges') }}
