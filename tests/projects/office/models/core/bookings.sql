select desk_id, code, full_name as who, coalesce(amount, 0) as amount from {{ ref('bookings_raw') }}
