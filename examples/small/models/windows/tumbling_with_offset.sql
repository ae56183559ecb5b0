-- Clicks of five minutes that begin two past: 10:02 to 10:07, 10:07 to 10:12.
select
    window.start as begins_at,
    window.end as ends_at,
    count(*) as clicks

from {{ source('small', 'clicks') }}

group by window(clicked_at, '5 minutes', '5 minutes', '2 minutes')
