{# Stored on its own so that a new name or time zone ends here: only a new
   currency goes on to the orders. #}
with

restaurants as (

    select * from {{ ref('stg_ordering__restaurants') }}

),

priced_restaurants as (

    select
        ---------- ids
        restaurant_id,

        ---------- strings
        currency_code

    from restaurants

)

select * from priced_restaurants
