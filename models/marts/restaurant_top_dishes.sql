with

dish_windows as (

    select * from {{ ref('int_dish_windows_totaled') }}

),

dishes as (

    select * from {{ ref('stg_ordering__dishes') }}

),

{# a row for each length of window in which the dish was ordered #}
dishes_spread as (

    select
        dish_windows.restaurant_id,
        dish_windows.dish_id,
        windows.*

    from dish_windows

        lateral view stack(
            {{ var('window_hours') | length }},
            {% for hours in var('window_hours') %}
            pane_count_{{ hours }}h,
            quantity_sold_{{ hours }}h,
            sales_amount_{{ hours }}h,
            {{ hours }}{% if not loop.last %},{% endif %}
            {% endfor %}
        ) windows as
        pane_count,
        quantity_sold,
        sales_amount,
        window_hours

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

    from dishes_spread

    where pane_count > 0

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
