{{ config(materialized='view') }}
select member_id, tier, city
from {{ source('raw', 'changes') }}
qualify row_number() over (partition by member_id order by changed_at desc) = 1
