-- Each change with what held an hour before it.
select changes.change_id, changes.account_id, changes.balance, history.status as status_before
from {{ source('raw', 'changes') }} as changes
join {{ ref('account_history') }} as history
    on changes.account_id = history.account_id
    and changes.changed_at - interval 1 hour between history.valid_from and history.valid_to
