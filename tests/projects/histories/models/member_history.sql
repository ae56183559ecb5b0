-- The history of each member, with the plan's price of today.
select
    changes.member_id, changes.change_id, changes.tier, changes.city, plans.price,
    changes.changed_at as valid_from,
    coalesce(
        lag(changes.changed_at) over (partition by changes.member_id order by changes.changed_at desc)
        - interval 1 millisecond,
        timestamp '9999-12-31 23:59:59.999'
    ) as valid_to,
    row_number() over (partition by changes.member_id order by changes.changed_at desc) = 1
        as is_current
from {{ source('raw', 'changes') }} as changes
left join {{ source('raw', 'plans') }} as plans on changes.plan_id = plans.plan_id
