with

destination_windows as (

    select * from {{ ref('int_destination_windows_totaled') }}

),

airport_windows as (

    select
        ---------- ids
        airport_id,

        ---------- numerics
        window_hours,
        count(*) as destination_count,
        sum(flight_count) as flight_count,
        sum(cancelled_count) as cancelled_count,
        sum(seat_count) as seat_count,
        sum(unseated_count) as unseated_count,
        sum(miles_flown) as miles_flown

    from destination_windows

    group by 1, 2

)

select * from airport_windows
