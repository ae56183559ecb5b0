with

destination_windows as (

    select * from {{ ref('int_destination_windows_totaled') }}

),

airports as (

    select * from {{ ref('stg_nycflights__airports') }}

),

ranked_destinations as (

    select
        *,
        {# destination_id makes the order total: a tie is no coin toss #}
        row_number() over (
            partition by airport_id, window_hours
            order by flight_count desc, seat_count desc, destination_id asc
        ) as destination_rank

    from destination_windows

    where flight_count > 0

),

top_destinations_named as (

    select
        ---------- ids
        ranked_destinations.airport_id,
        ranked_destinations.destination_id,

        ---------- strings
        coalesce(
            airports.airport_name, ranked_destinations.destination_id
        ) as destination_name,

        ---------- numerics
        ranked_destinations.window_hours,
        ranked_destinations.destination_rank,
        ranked_destinations.flight_count,
        ranked_destinations.seat_count,
        ranked_destinations.miles_flown

    from ranked_destinations

    left join airports
        on ranked_destinations.destination_id = airports.airport_id

    where ranked_destinations.destination_rank <= 3

)

select * from top_destinations_named
