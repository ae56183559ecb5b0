select
    meter_id, reading_id,
    first_value(level) ignore nulls over w as level_after,
    count(*) over w as rows_after
from {{ source('raw', 'readings') }}
window w as (partition by meter_id order by read_at rows between current row and unbounded following)
