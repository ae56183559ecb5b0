select
    shop_totals.shop_id,
    shop_names.shop_name,
    shop_totals.sales_amount,
    cast(shop_totals.sales_amount as double) / shop_totals.sale_count as mean_amount

from {{ ref('shop_totals') }} as shop_totals

left join {{ ref('shop_names') }} as shop_names
    on shop_totals.shop_id = shop_names.shop_id
