select * from {{ ref('shop_totals') }} where sales_amount < 0
