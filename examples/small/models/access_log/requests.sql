-- Lines of nginx's format `combined`; a line of another form has no path.
{% set request = '"([A-Z]+) ([^ "?]+)[^"]*" ([0-9]{3}) ' %}

select
    split(line, ' ')[0] as client,
    nullif(regexp_extract(line, '{{ request }}', 1), '') as verb,
    nullif(regexp_extract(line, '{{ request }}', 2), '') as path,
    try_cast(regexp_extract(line, '" ([0-9]{3}) ', 1) as int) as status,
    try_to_timestamp(
        regexp_extract(line, '\\[([^]]+)\\]', 1), 'dd/MMM/yyyy:HH:mm:ss Z'
    ) as requested_at

from {{ source('small', 'access') }}
