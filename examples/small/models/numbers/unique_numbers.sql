-- Each value once, and its place in their order.
select
    value,
    row_number() over (order by value) as place

from {{ ref('numbers') }}

group by value
