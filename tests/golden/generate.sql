# title: exploded elements are linear
select orders.order_id, item.dish_id from bronze.orders as orders lateral view explode(orders.items) exploded as item;
signed rows keys=(order_id);

# title: explode in the select list
select order_id, explode(items) as item from bronze.orders;
signed rows keys=(order_id);

# title: totals of exploded elements are additive
select item.dish_id, count(*) as rows, sum(item.quantity) as sold from bronze.orders as orders lateral view explode(orders.items) exploded as item group by 1;
signed groups unique=(dish_id);

# title: a literal that stack() gives once tells the rows of a row apart
select order_id, value, hours from bronze.orders lateral view stack(2, amount, 1, amount, 24) windows as value, hours;
signed rows keys=(order_id) unique=(order_id, hours);

# title: a literal that stack() gives twice does not
select order_id, value, hours from bronze.orders lateral view stack(2, amount, 1, amount, 01) windows as value, hours;
signed rows keys=(order_id);

# title: a join on an exploded element finds its rows again
select lines.order_id, dishes.dish_name, max(lines.item.quantity) as most from (select order_id, item from bronze.orders lateral view explode(items) exploded as item) as lines inner join bronze.dishes as dishes on lines.item.dish_id = dishes.dish_id group by 1, 2;
region keys=(order_id) unique=(order_id, dish_name);

# title: inline in a select list has no rule
select order_id, inline(items) from bronze.orders;
full reason=PARSE_UNSUPPORTED;

# title: explode over an aggregate makes rows of its group
select restaurant_id, explode(collect_set(status)) as status from bronze.orders group by restaurant_id;
region keys=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: rows of a window function without its partition
select explode(array(row_number() over (partition by restaurant_id order by order_id))) as place from bronze.orders;
signed rows keys=(place) stage_1=(region keys=(__livemart_key_1)) last=(select * except (`__livemart_key_1`) from stage_1);

# title: a condition on the elements of an array
select order_id from bronze.orders where exists(items, item -> item.quantity > amount);
signed rows keys=(order_id) unique=(order_id);

# title: a lateral generator is a lateral view
select order_id, item from bronze.orders, lateral explode(items) as exploded(item);
signed rows keys=(order_id);

# title: a lateral generator of a left join is an outer one
select orders.order_id, exploded.item, max(amount) as most from bronze.orders as orders left join lateral posexplode_outer(orders.items) as exploded(place, item) on true group by 1, 2;
region keys=(order_id) unique=(order_id, item);

# title: a lateral generator of another's elements
select order_id, dish, letter from bronze.orders, lateral inline(items) as items(dish, quantity), lateral explode(split(items.dish, '')) as letters(letter);
signed rows keys=(order_id);

# title: a condition on a lateral generator has no rule
select order_id, item from bronze.orders join lateral explode(items) as exploded(item) on item.quantity > 1;
full reason=PARSE_UNSUPPORTED;

# title: a lateral table function has no rule
select order_id, place from bronze.orders, lateral range(3) as places(place);
full reason=PARSE_UNSUPPORTED;

# title: a generator of several columns in a select list is a lateral view
select order_id, posexplode_outer(items) as (place, item) from bronze.orders;
signed rows keys=(order_id) unique=(order_id, place);

# title: a field of an element that is named as its view
select order_id, item.dish_id from bronze.orders lateral view explode(items) item as item;
signed rows keys=(order_id);

# title: columns of a generator in a select list beside all of a table, and groups above
select restaurant_id, kind, max(value) as most from (select *, stack(2, 'amount', amount, 'none', 0) as (kind, value) from bronze.orders) group by 1, 2;
region keys=(restaurant_id) unique=(restaurant_id, kind);

# title: columns of a generator beside a window have no rule
select order_id, posexplode(items) as (place, item), row_number() over (partition by restaurant_id order by order_id) as n from bronze.orders;
full reason=PARSE_UNSUPPORTED;

# title: the days between the first and the last row of a group
select restaurant_id, explode(sequence(min(ordered_at), max(ordered_at), interval 1 day)) as day from bronze.orders group by restaurant_id;
region keys=(restaurant_id);

# title: rows between the first and the last row of all
select explode(sequence(min(ordered_at), max(ordered_at), interval 1 day)) as day from bronze.orders;
full reason=GLOBAL_AGG;

# title: a lateral subquery of a generator alone is a lateral view
select order_id, exploded.item from bronze.orders as orders cross join lateral (select explode(orders.items) as item) as exploded;
signed rows keys=(order_id);

# title: a lateral subquery of a generator and a condition has no rule
select order_id, exploded.item from bronze.orders as orders cross join lateral (select explode(orders.items) as item where orders.amount > 1) as exploded;
full reason=PARSE_UNSUPPORTED;

# title: a generator reads the clock for a value
select order_id, day from bronze.orders lateral view explode(sequence(ordered_at, (select as_of from livemart.clock), interval 1 day)) days as day;
signed rows keys=(order_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: days until the clock, of no table
select explode(sequence(date '2026-01-01', to_date((select as_of from livemart.clock)))) as day;
signed rows reason=SCALAR_SUBQUERY_CHANGED;

# title: a lateral generator reads a joined clock
select order_id, day from bronze.orders cross join livemart.clock as c, lateral explode(sequence(ordered_at, c.as_of, interval 1 day)) as days(day);
signed rows keys=(order_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: constant rows that hold a value of a table
select v from (values ((select as_of from livemart.clock))) as t(v);
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: a generator of constants makes rows of groups
select restaurant_id, explode(array(1, 2)) as place, count(*) as n from bronze.orders group by restaurant_id;
region keys=(restaurant_id);

# title: a generator beside windows of two partitions
select order_id, restaurant_id, explode(items) as item, rank() over (partition by restaurant_id order by amount) as a, rank() over (partition by customer_id order by amount) as b from bronze.orders;
full reason=KEY_NOT_IN_OUTPUT;
