select s.sale_id, c.as_of from {{ source('raw', 'sales') }} as s cross join {{ source('livemart', 'clock') }} as c
