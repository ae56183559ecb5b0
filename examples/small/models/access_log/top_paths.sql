-- The five paths that are requested most, whatever their answer.
with
counted as (
    select
        path,
        count(*) as requests,
        count_if(status >= 400) as errors

    from {{ ref('requests') }}

    where path is not null

    group by path
),

ranked as (
    select
        path,
        requests,
        errors,
        row_number() over (order by requests desc, path asc) as place

    from counted
)

select
    place,
    path,
    requests,
    errors

from ranked

where place <= 5
