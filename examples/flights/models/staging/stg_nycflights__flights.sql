with

flights as (

    select * from {{ source('nycflights', 'flights') }}

),

flights_renamed as (

    select
        ---------- ids
        concat_ws(
            '-', year, month, day, carrier, flight, origin, sched_dep_time
        ) as flight_id,
        carrier as airline_id,
        origin as airport_id,
        dest as destination_id,
        tailnum as plane_id,

        ---------- numerics
        distance as distance_miles,
        {# greatest() would take the 0 where there is no delay at all #}
        case when dep_delay < 0 then 0 else dep_delay end as delay_minutes,

        ---------- booleans
        {# who never left has no delay: that is how the data says it #}
        dep_delay is null as is_cancelled,

        ---------- timestamps
        scheduled_at as scheduled_departure_at,
        reported_at

    from flights

)

select * from flights_renamed
