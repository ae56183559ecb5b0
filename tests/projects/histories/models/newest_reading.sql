-- Each meter with what it read last, by a subquery.
select
    meters.meter_id,
    (
        select readings.reading_id
        from {{ source('raw', 'readings') }} as readings
        where readings.meter_id = meters.meter_id
        order by readings.read_at desc
        limit 1
    ) as reading_id
from (select distinct meter_id from {{ source('raw', 'readings') }}) as meters
