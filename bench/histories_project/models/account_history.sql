select
    account_id, change_id, status, plan, changed_at as valid_from,
    coalesce(
        lag(changed_at) over (partition by account_id order by changed_at desc) - interval 1 millisecond,
        timestamp '9999-12-31 23:59:59.999'
    ) as valid_to,
    row_number() over (partition by account_id order by changed_at desc) = 1 as is_current
from {{ source('raw', 'changes') }}
