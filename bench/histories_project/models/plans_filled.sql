-- A change that names no plan keeps the one before it.
select
    account_id, change_id, changed_at,
    last_value(plan, true) over (
        partition by account_id order by changed_at rows between unbounded preceding and current row
    ) as plan
from {{ source('raw', 'changes') }}
