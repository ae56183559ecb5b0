select newest.member_id, plans.plan_name, plans.price
from (
    select member_id, max_by(plan_id, changed_at) as plan_id from {{ source('raw', 'changes') }} group by member_id
) as newest
join {{ source('raw', 'plans') }} as plans on newest.plan_id = plans.plan_id
