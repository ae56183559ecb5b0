with

airports as (

    select * from {{ ref('stg_nycflights__airports') }}

),

airport_windows as (

    select * from {{ ref('int_airport_windows_totaled') }}

),

{# every airport and window has its row, also when nothing left #}
windows_to_fill as (

    {% for hours in var('window_hours') %}
    select
        airport_id,
        airport_name,
        {{ hours }} as window_hours

    from airports

    where
        airport_id in (
            {% for airport_id in var('reporting_airports') %}
            '{{ airport_id }}'{% if not loop.last %},{% endif %}
            {% endfor %}
        )

    {% if not loop.last %}union all{% endif %}
    {% endfor %}

),

windows_filled as (

    select
        ---------- ids
        windows_to_fill.airport_id,

        ---------- strings
        windows_to_fill.airport_name,

        ---------- numerics
        windows_to_fill.window_hours,
        coalesce(airport_windows.flight_count, 0) as flight_count,
        coalesce(airport_windows.cancelled_count, 0) as cancelled_count,
        coalesce(airport_windows.seat_count, 0) as seat_count,
        coalesce(airport_windows.unseated_count, 0) as unseated_count,
        coalesce(airport_windows.miles_flown, 0) as miles_flown

    from windows_to_fill

    left join airport_windows
        on
            windows_to_fill.airport_id = airport_windows.airport_id
            and windows_to_fill.window_hours = airport_windows.window_hours

)

select * from windows_filled
