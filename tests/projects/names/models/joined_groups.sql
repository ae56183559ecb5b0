select g.n as `Select`, count(*) as `count`, sum(s.amount) as `From`
from {{ source('shop', 'sales') }} as s inner join {{ ref('groups_above') }} as g2 on s.ShopID = g2.CustomerKEY
inner join (select CustomerKey as `w1`, max(N) as N from {{ ref('groups') }} group by 1) as g on g.`W1` = s.SHOPID group by G.N
