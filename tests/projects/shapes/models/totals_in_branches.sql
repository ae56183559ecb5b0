select 'sales' as measure, count(*) as value from {{ source('raw', 'sales') }}
union all select 'quantity', sum(quantity) from {{ source('raw', 'sales') }} where amount > 0
union all select 'refunded', max(r.refund) from {{ source('raw', 'refunds') }} as r join {{ source('raw', 'sales') }} as s on r.sale_id = s.sale_id
order by measure
