select charges.charge_id, charges.member_id, charges.amount, newest.tier
from {{ source('raw', 'charges') }} as charges
left join (
    select member_id, tier from {{ source('raw', 'changes') }}
    qualify row_number() over (partition by member_id order by changed_at desc) = 1
) as newest on charges.member_id = newest.member_id
