select
    shop_id,
    count(*) as visit_count

from {{ source('shop', 'visits') }}

group by 1
