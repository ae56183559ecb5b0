with

destination_hours as (

    select * from {{ ref('int_destination_hours_totaled') }}

),

airport_hours as (

    select
        ---------- ids
        airport_id,

        ---------- timestamps
        hour_started_at,

        ---------- numerics
        count(*) as destination_count,
        sum(flight_count) as flight_count,
        sum(cancelled_count) as cancelled_count,
        sum(seat_count) as seat_count,
        sum(miles_flown) as miles_flown

    from destination_hours

    group by 1, 2

)

select * from airport_hours
