with

airlines as (

    select * from {{ source('nycflights', 'airlines') }}

),

airlines_renamed as (

    select
        ---------- ids
        carrier as airline_id,

        ---------- strings
        name as airline_name

    from airlines

)

select * from airlines_renamed
