-- Each charge with the change that it fell under, by rank over all that match.
select charge_id, member_id, amount, tier
from (
    select
        charges.charge_id, charges.member_id, charges.amount, changes.tier,
        row_number() over (partition by charges.charge_id order by changes.changed_at desc) as place
    from {{ source('raw', 'charges') }} as charges
    left join {{ source('raw', 'changes') }} as changes
        on charges.member_id = changes.member_id and changes.changed_at <= charges.charged_at
) as matched
where place = 1
