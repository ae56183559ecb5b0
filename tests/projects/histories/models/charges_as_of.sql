-- Each charge with what held at its time.
select charges.charge_id, charges.member_id, charges.amount, history.tier, history.city, history.price
from {{ source('raw', 'charges') }} as charges
join {{ ref('member_history') }} as history
    on charges.member_id = history.member_id
    and charges.charged_at between history.valid_from and history.valid_to
