with

source as (

    select * from {{ source('ordering', 'order_events') }}

),

order_events as (

    select
        ---------- ids
        _origin as arrival_id,
        order_id,
        restaurant_id,

        ---------- strings
        status as order_status,

        ---------- numerics
        _batch_id as batch_id,

        ---------- booleans
        coalesce(op = 'd', false) as is_deletion,

        ---------- timestamps
        ordered_at,
        updated_at,
        _landed_at as landed_at

    from source

)

select * from order_events
