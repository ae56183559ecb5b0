with

flights as (

    select * from {{ ref('int_flights_seated') }}

),

airlines as (

    select * from {{ ref('stg_nycflights__airlines') }}

),

airline_days as (

    select
        airline_id,
        date_trunc('day', scheduled_departure_at) as day_started_at,
        count(*) as scheduled_count,
        count(delay_minutes) as flight_count,
        sum(coalesce(delay_minutes, 0)) as delay_minutes

    from flights

    group by 1, 2

),

airline_days_named as (

    select
        ---------- ids
        airline_days.airline_id,

        ---------- strings
        coalesce(airlines.airline_name, airline_days.airline_id)
            as airline_name,

        ---------- numerics
        airline_days.scheduled_count,
        airline_days.flight_count,
        airline_days.scheduled_count
        - airline_days.flight_count as cancelled_count,
        airline_days.delay_minutes,

        ---------- timestamps
        airline_days.day_started_at

    from airline_days

    left join airlines
        on airline_days.airline_id = airlines.airline_id

)

select * from airline_days_named
