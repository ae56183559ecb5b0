select desk_id, amount * {{ var('fee') }} as fee, {{ shared.label("'x'") }} as label from {{ ref('office', 'bookings') }}
