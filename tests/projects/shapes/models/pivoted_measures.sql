with base as (select s.shop_id, date(s.sold_at) as sold_on, s.quantity, s.amount from {{ source('raw', 'sales') }} as s)
select p.sold_on, h.region, p.one_amount, p.two_sales
from base pivot (sum(amount) as amount, count(*) as sales for quantity in (1 as one, 2 as two)) as p
left join {{ source('raw', 'shops') }} as h on p.shop_id = h.shop_id
