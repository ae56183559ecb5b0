select account_id, max_by(status, changed_at) as status, count(*) as changes, sum(balance) as balances
from {{ source('raw', 'changes') }}
group by account_id
