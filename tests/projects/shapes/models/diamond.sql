select t.shop_id, t.hour_started_at, t.sale_count, r.amount
from {{ ref('hours_totaled') }} as t
inner join {{ ref('hours_running') }} as r on t.shop_id <=> r.shop_id and t.hour_started_at <=> r.hour_started_at
