select newest.member_id, newest.plan_id, plans.plan_name, cities.region
from (
    select *, row_number() over (partition by member_id order by changed_at desc) as place
    from {{ source('raw', 'changes') }}
) as newest
left join {{ source('raw', 'plans') }} as plans on newest.plan_id = plans.plan_id
left join {{ source('raw', 'cities') }} as cities on newest.city = cities.city
where newest.place = 1
