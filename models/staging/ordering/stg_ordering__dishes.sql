with

source as (

    select * from {{ source('ordering', 'dishes') }}

),

dishes as (

    select
        ---------- ids
        dish_id,
        restaurant_id,

        ---------- strings
        dish_name,

        ---------- timestamps
        updated_at

    from source

)

select * from dishes
