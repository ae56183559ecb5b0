select account_id, status, plan, balance, changed_at
from {{ source('raw', 'changes') }}
qualify row_number() over (partition by account_id order by changed_at desc) = 1
