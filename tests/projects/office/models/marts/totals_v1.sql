select desk_id, sum(amount) as amount from {{ ref('bookings') }} group by desk_id
