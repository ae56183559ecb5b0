-- The newest charge of a member, by a lateral subquery.
select members.member_id, newest.charge_id, newest.amount
from {{ ref('first_seen') }} as members
left join lateral (
    select charges.charge_id, charges.amount
    from {{ source('raw', 'charges') }} as charges
    where charges.member_id = members.member_id
    order by charges.charged_at desc
    limit 1
) as newest on true
