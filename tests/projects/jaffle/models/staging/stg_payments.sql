select id as payment_id, order_id, {{ tiny_utils.cents_to_amount('amount_cents') }} as amount, rate
from {{ ref('raw_payments') }}
