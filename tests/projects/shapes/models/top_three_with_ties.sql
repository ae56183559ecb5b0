select shop_id, sale_id, amount, amount_rank from (
    select shop_id, sale_id, amount, rank() over (partition by shop_id order by amount desc) as amount_rank
    from {{ source('raw', 'sales') }}
)
where amount_rank <= 3
