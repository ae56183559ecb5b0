-- What a shop took from the day before to two days after.
select
    shop,
    taken_on,
    amount,
    sum(amount) over (
        partition by shop
        order by taken_on
        range between interval 1 day preceding and interval 2 days following
    ) as amount_around

from {{ source('small', 'takings') }}
