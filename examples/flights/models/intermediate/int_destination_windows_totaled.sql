with

destination_hours as (

    select * from {{ ref('int_destination_hours_totaled') }}

),

destination_windows as (

    {% for hours in var('window_hours') %}
    select
        airport_id,
        destination_id,
        {{ hours }} as window_hours,
        count(*) as hour_count,
        sum(flight_count) as flight_count,
        sum(cancelled_count) as cancelled_count,
        sum(seat_count) as seat_count,
        sum(unseated_count) as unseated_count,
        sum(miles_flown) as miles_flown

    from destination_hours

    where
        hour_started_at >= {{ window_start(hours) }}
        and hour_started_at < {{ as_of() }}

    group by 1, 2, 3

    {% if not loop.last %}union all{% endif %}
    {% endfor %}

)

select * from destination_windows
