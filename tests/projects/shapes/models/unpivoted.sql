with measures as (
    select * from (select sale_id, shop_id, quantity, cast(weight as int) as weight from {{ source('raw', 'sales') }})
    unpivot (value for measure in (quantity as `sold`, weight))
)
select shop_id, measure, sum(value) as value, count(*) as value_count from measures group by shop_id, measure
