select
    shop_id,
    count(*) as sale_count,
    count(*) filter (where quantity > 1) as several_count,
    sum(quantity) filter (where amount > 30) as large_quantity,
    cast(coalesce(sum(amount) filter (where tags is null), 0) as decimal(20, 2)) as untagged_amount,
    count_if(amount is null) filter (where quantity > 1) as unknown_count
from {{ source('raw', 'sales') }}
group by shop_id
