with

airports as (

    select * from {{ source('nycflights', 'airports') }}

),

airports_renamed as (

    select
        ---------- ids
        faa as airport_id,

        ---------- strings
        name as airport_name,
        tzone as time_zone

    from airports

)

select * from airports_renamed
