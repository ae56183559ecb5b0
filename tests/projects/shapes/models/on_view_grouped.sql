select h.region, sum(g.sale_count) as sale_count, count(*) as shop_count from {{ ref('view_grouped') }} as g
inner join {{ source('raw', 'shops') }} as h on g.shop_id = h.shop_id
group by h.region
