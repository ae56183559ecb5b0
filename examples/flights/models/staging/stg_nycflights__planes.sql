with

planes as (

    select * from {{ source('nycflights', 'planes') }}

),

planes_renamed as (

    select
        ---------- ids
        tailnum as plane_id,

        ---------- strings
        manufacturer,
        model as plane_model,

        ---------- numerics
        seats as seat_count

    from planes

)

select * from planes_renamed
