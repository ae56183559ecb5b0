select
    days.day,
    {% for method in values_of(ref('stg_receipts'), 'method') -%}
    count_if(stg_receipts.method = '{{ method }}') as {{ method }},
    {% endfor -%}
    coalesce(sum({{ function('net_of_tax') }}(stg_receipts.amount)), 0) as net
from {{ ref('days') }} as days
left join {{ ref('stg_receipts') }} as stg_receipts on days.day = stg_receipts.day
group by days.day
