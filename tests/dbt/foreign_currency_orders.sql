{# Returns the orders that count nowhere because their currency is not the
   restaurant's: somebody has to correct one or the other. #}
{{ config(severity='warn') }}

select
    orders.order_id,
    orders.restaurant_id,
    orders.currency_code,
    restaurants.currency_code as restaurant_currency_code

from {{ ref('stg_ordering__orders') }} as orders

inner join {{ ref('int_restaurants_priced') }} as restaurants
    on orders.restaurant_id = restaurants.restaurant_id

where not (orders.currency_code <=> restaurants.currency_code)
