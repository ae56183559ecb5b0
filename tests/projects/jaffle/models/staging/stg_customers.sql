select id as customer_id, customer_name, note
from {{ ref('raw_customers') }}
