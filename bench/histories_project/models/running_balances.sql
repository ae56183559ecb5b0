select
    account_id, change_id, changed_at,
    sum(balance) over (
        partition by account_id order by changed_at rows between 9 preceding and current row
    ) as of_ten_changes
from {{ source('raw', 'changes') }}
