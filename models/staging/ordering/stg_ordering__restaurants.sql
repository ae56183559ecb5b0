with

source as (

    select * from {{ source('ordering', 'restaurants') }}

),

restaurants as (

    select
        ---------- ids
        restaurant_id,

        ---------- strings
        restaurant_name,
        time_zone,
        currency_code,

        ---------- timestamps
        updated_at

    from source

)

select * from restaurants
