with

airport_hours as (

    select * from {{ ref('int_airport_hours_totaled') }}

),

{# an hour is named by its start, so 24 hours reach back 23 from it #}
running_totals as (

    select
        ---------- ids
        airport_id,

        ---------- timestamps
        hour_started_at,

        ---------- numerics
        {% for hours in var('window_hours') if hours != 1 %}
        sum(flight_count) over (
            partition by airport_id
            order by hour_started_at asc
            range between interval {{ hours - 1 }} hours preceding
            and current row
        ) as flight_count_{{ hours }}h,
        sum(seat_count) over (
            partition by airport_id
            order by hour_started_at asc
            range between interval {{ hours - 1 }} hours preceding
            and current row
        ) as seat_count_{{ hours }}h,
        sum(miles_flown) over (
            partition by airport_id
            order by hour_started_at asc
            range between interval {{ hours - 1 }} hours preceding
            and current row
        ) as miles_flown_{{ hours }}h,
        {% endfor %}
        flight_count,
        cancelled_count,
        seat_count,
        miles_flown

    from airport_hours

)

select * from running_totals
