-- Clicks of five minutes, every minute: 10:02 to 10:07, 10:03 to 10:08.
select
    window.start as begins_at,
    window.end as ends_at,
    count(*) as clicks

from {{ source('small', 'clicks') }}

group by window(clicked_at, '5 minutes', '1 minute')
