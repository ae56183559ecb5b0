select s.sale_id, hours.hour
from {{ source('raw', 'sales') }} as s
lateral view explode(sequence(date_trunc('hour', s.sold_at), (select as_of from {{ source('livemart', 'clock') }}), interval 6 hours)) hours as hour
where s.sold_at <= (select as_of from {{ source('livemart', 'clock') }})
