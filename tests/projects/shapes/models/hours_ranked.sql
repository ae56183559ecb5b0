select shop_id, window_hours, amount, rank() over (partition by window_hours order by amount desc) as position
from {{ ref('hours_in_windows') }}
