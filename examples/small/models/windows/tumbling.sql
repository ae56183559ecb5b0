-- Clicks of each five minutes.
select
    window.start as begins_at,
    window.end as ends_at,
    count(*) as clicks

from {{ source('small', 'clicks') }}

group by window(clicked_at, '5 minutes')
