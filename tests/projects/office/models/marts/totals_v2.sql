select desk_id, room, sum(amount) as amount, count(*) as n from {{ ref('bookings') }} join {{ ref('rooms') }} using (desk_id) group by desk_id, room
