with

flights as (

    select * from {{ ref('int_flights_seated') }}

),

flights_counted as (

    select
        ---------- ids
        airport_id,
        destination_id,

        ---------- numerics
        case when is_cancelled then 0 else 1 end as departed_count,
        case when is_cancelled then 1 else 0 end as cancelled_count,
        case
            when is_cancelled then 0
            else coalesce(seat_count, 0)
        end as seat_count,
        case
            when is_cancelled or seat_count is not null then 0
            else 1
        end as unseated_count,
        case when is_cancelled then 0 else distance_miles end as miles_flown,

        ---------- timestamps
        date_trunc('hour', scheduled_departure_at) as hour_started_at

    from flights

),

destination_hours as (

    select
        ---------- ids
        airport_id,
        destination_id,

        ---------- timestamps
        hour_started_at,

        ---------- numerics
        count(*) as scheduled_count,
        sum(departed_count) as flight_count,
        sum(cancelled_count) as cancelled_count,
        sum(seat_count) as seat_count,
        sum(unseated_count) as unseated_count,
        sum(miles_flown) as miles_flown

    from flights_counted

    group by 1, 2, 3

)

select * from destination_hours
