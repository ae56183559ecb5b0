# title: a filter and a projection are linear
select order_id, upper(status) as status from bronze.orders where status <> 'cancelled';
signed rows keys=(order_id) unique=(order_id);

# title: an append-only source is appended to
select order_id, status from bronze.order_events where status = 'placed';
append rows keys=(order_id, status);

# title: columns through two subqueries stay keys
select a.restaurant_id, max(a.amount) as highest from (select restaurant_id, amount from (select * from bronze.orders) as x) as a group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a struct's field is a plain expression
select order_id, size(items) as item_count from bronze.orders;
signed rows keys=(order_id) unique=(order_id);

# title: a column that two relations could give is not guessed
select order_id from bronze.orders, bronze.unknown;
full reason=INPUT_NOT_IN_DELTA;

# title: names of common table expressions know no letter case
with Placed as (select order_id, status from bronze.orders) select order_id from placed;
signed rows keys=(order_id) unique=(order_id);

# title: a semicolon and a last word
select order_id, amount from bronze.orders; -- done;
signed rows keys=(order_id) unique=(order_id);
