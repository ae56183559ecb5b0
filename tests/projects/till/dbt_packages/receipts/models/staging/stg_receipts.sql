select receipt_id, method, amount, cast(paid_at as date) as day
from {{ source('tills', 'receipts') }}
