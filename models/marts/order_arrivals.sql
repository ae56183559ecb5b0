with

order_events as (

    select * from {{ ref('stg_ordering__order_events') }}

),

arrivals_placed as (

    select
        *,
        {{ pane_start('ordered_at') }} as pane_started_at

    from order_events

),

arrivals_timed as (

    select
        *,
        landed_at
        >= pane_started_at + interval '{{ var("pane_minutes") }}' minute
            as is_late

    from arrivals_placed

),

arrivals as (

    select
        ---------- ids
        arrival_id,
        order_id,
        restaurant_id,

        ---------- strings
        order_status,

        ---------- numerics
        batch_id,
        unix_seconds(landed_at) - unix_seconds(ordered_at)
            as lateness_seconds,
        unix_seconds(landed_at) - unix_seconds(updated_at)
            as transit_seconds,

        ---------- booleans
        is_deletion,
        coalesce(is_late, false) as is_late,

        ---------- timestamps
        ordered_at,
        updated_at,
        landed_at,
        pane_started_at,
        case when is_late then pane_started_at end as changed_pane_started_at

    from arrivals_timed

)

select * from arrivals
