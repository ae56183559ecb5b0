-- Sums beside each product: of its class, of that up to its name, of all.
select
    class,
    name,
    price,
    sum(price) over (partition by class) as class_total,
    sum(price) over (
        partition by class
        order by name
        rows between unbounded preceding and current row
    ) as running_total,
    sum(price) over () as grand_total

from {{ source('small', 'products') }}
