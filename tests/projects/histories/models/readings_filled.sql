-- A reading that is missing is what was read before.
select
    meter_id, reading_id, read_at,
    last_value(level, true) over (
        partition by meter_id order by read_at rows between unbounded preceding and current row
    ) as level
from {{ source('raw', 'readings') }}
