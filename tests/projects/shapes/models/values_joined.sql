select s.sale_id, names.name
from {{ source('raw', 'sales') }} as s
inner join (values (1, 'one'), (2, 'two'), (3, 'three')) as names (quantity, name) on s.quantity = names.quantity
