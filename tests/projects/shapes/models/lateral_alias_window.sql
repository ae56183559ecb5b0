with active as (
    select
        sale_id,
        customer_id,
        max(case when amount > 5 then sold_at end) over (partition by customer_id) as last_at,
        coalesce(last_at = sold_at, false) as is_last,
        amount > 5 as is_active
    from {{ source('raw', 'sales') }}
),
changes as (
    select
        *,
        coalesce(lag(is_active) over (partition by customer_id order by last_at, sale_id), false) as was_active,
        is_active and not was_active as is_new
    from active
)
select *, case when is_new then 'new' when is_last then 'last' end as category from changes
