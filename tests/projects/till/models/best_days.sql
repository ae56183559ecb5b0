select day, net, card + cash as receipts
from {{ ref('receipts_by_day') }}
where net >= 5
