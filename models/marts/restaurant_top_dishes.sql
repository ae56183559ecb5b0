with

dish_windows as (

    select * from {{ ref('int_dish_windows_totaled') }}

),

dishes as (

    select * from {{ ref('stg_ordering__dishes') }}

),

ranked_dishes as (

    select
        restaurant_id,
        dish_id,
        window_hours,
        quantity_sold,
        sales_amount,
        {# dish_id makes the order total: a tie must not be a coin toss #}
        row_number() over (
            partition by restaurant_id, window_hours
            order by quantity_sold desc, sales_amount desc, dish_id asc
        ) as dish_rank

    from dish_windows

),

top_dishes as (

    select * from ranked_dishes

    where dish_rank <= 3

),

top_dishes_named as (

    select
        ---------- ids
        top_dishes.restaurant_id,
        top_dishes.dish_id,

        ---------- strings
        coalesce(dishes.dish_name, top_dishes.dish_id) as dish_name,

        ---------- numerics
        top_dishes.window_hours,
        top_dishes.dish_rank,
        top_dishes.quantity_sold,
        cast(top_dishes.sales_amount as decimal(18, 2)) as sales_amount

    from top_dishes

    left join dishes
        on top_dishes.dish_id = dishes.dish_id

)

select * from top_dishes_named
