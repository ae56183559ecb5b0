with

flights as (

    select * from {{ ref('stg_nycflights__flights') }}

),

planes as (

    select * from {{ ref('stg_nycflights__planes') }}

),

flights_seated as (

    select
        ---------- ids
        flights.flight_id,
        flights.airline_id,
        flights.airport_id,
        flights.destination_id,
        flights.plane_id,

        ---------- numerics
        flights.distance_miles,
        flights.delay_minutes,
        {# one flight in six has an unknown plane: it counts, without seats #}
        planes.seat_count,

        ---------- booleans
        flights.is_cancelled,

        ---------- timestamps
        flights.scheduled_departure_at,
        flights.reported_at

    from flights

    left join planes
        on flights.plane_id = planes.plane_id

)

select * from flights_seated
