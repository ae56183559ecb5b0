# title: a fact with a dimension
select orders.order_id, restaurants.restaurant_name from bronze.orders as orders inner join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id;
signed rows lookups=1/1 keys=(order_id) unique=(order_id);

# title: a left join with a changing dimension
select orders.order_id, restaurants.restaurant_name from bronze.orders as orders left join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id;
signed rows lookups=1/1 keys=(order_id) unique=(order_id);

# title: totals over a join
select restaurants.currency_code, count(*) as orders, sum(orders.amount) as amount from bronze.orders as orders inner join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id group by 1;
signed groups lookups=1/1 keys=(currency_code) unique=(currency_code);

# title: a left join on an aggregate is confined by the key
select restaurants.restaurant_id, totals.n from bronze.restaurants as restaurants left join (select restaurant_id, max(amount) as n from bronze.orders group by 1) as totals on restaurants.restaurant_id = totals.restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a right join is a left join of the sides swapped
select restaurants.restaurant_id, orders.order_id from bronze.orders as orders right join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id;
signed rows lookups=1/1 keys=(restaurant_id) unique=(restaurant_id, order_id);

# title: a full outer join has no preserved side
select orders.order_id, dishes.dish_id from bronze.orders as orders full outer join bronze.dishes as dishes on orders.order_id = dishes.dish_id;
full reason=KEY_NOT_IN_OUTPUT;

# title: a cross join with constants
select restaurants.restaurant_id, hours.window_hours from bronze.restaurants as restaurants cross join (values (1), (24)) as hours(window_hours);
signed rows keys=(restaurant_id);

# title: a left anti join
select dishes.dish_id from bronze.dishes as dishes left anti join bronze.restaurants as restaurants on dishes.restaurant_id = restaurants.restaurant_id;
signed rows lookups=1/1 keys=(dish_id) unique=(dish_id);

# title: a self join reads two occurrences
select a.order_id, b.order_id as other_id from bronze.orders as a inner join bronze.orders as b on a.customer_id = b.customer_id and a.order_id < b.order_id;
signed rows lookups=1/1 keys=(order_id) unique=(order_id, other_id);

# title: NOT IN is aware of NULL
select dish_id from bronze.dishes where restaurant_id not in (select restaurant_id from bronze.restaurants);
full reason=NULL_AWARE_ANTI;

# title: EXISTS is recomputed
select dish_id from bronze.dishes as d where exists (select 1 from bronze.restaurants as r where r.restaurant_id = d.restaurant_id);
region keys=(dish_id) unique=(dish_id);

# title: a comma join with its condition in WHERE
select orders.order_id, restaurants.restaurant_name from bronze.orders as orders, bronze.restaurants as restaurants where orders.restaurant_id = restaurants.restaurant_id and orders.amount > 3;
signed rows lookups=1/1 keys=(order_id) unique=(order_id);

# title: an equality that each branch of an OR repeats
select orders.order_id, restaurants.restaurant_name from bronze.orders as orders, bronze.restaurants as restaurants where (orders.restaurant_id = restaurants.restaurant_id and orders.amount > 3) or (orders.restaurant_id = restaurants.restaurant_id and restaurants.currency_code = 'EUR');
signed rows lookups=1/1 keys=(order_id) unique=(order_id);

# title: EXISTS in the select list
select dish_id, exists (select 1 from bronze.restaurants as r where r.restaurant_id = d.restaurant_id) as known from bronze.dishes as d;
region keys=(dish_id) unique=(dish_id);

# title: hints change no row
select /*+ broadcast(restaurants) */ orders.order_id, restaurants.restaurant_name from bronze.orders as orders inner join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id;
signed rows lookups=1/1 keys=(order_id) unique=(order_id);

# title: groups by columns of two dimensions
select restaurants.currency_code, dishes.dish_name, max(orders.amount) as most from bronze.orders as orders inner join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id inner join bronze.dishes as dishes on orders.restaurant_id = dishes.restaurant_id group by 1, 2;
region keys=(currency_code, dish_name) unique=(currency_code, dish_name);

# title: what a common table expression brings in twice is looked up as a whole
with names as (select restaurant_id, restaurant_name, currency_code from bronze.restaurants) select o.order_id, r.restaurant_name from bronze.orders as o join (select one.restaurant_id, other.restaurant_name from names as one join names as other on one.currency_code = other.currency_code) as r on o.restaurant_id = r.restaurant_id;
signed rows lookups=0/1 keys=(order_id);

# title: a join within brackets
select o.order_id, r.restaurant_name from ((select order_id, restaurant_id from bronze.orders) as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id);
full reason=PARSE_UNSUPPORTED;

# title: a lateral view within brackets
select o.order_id, i.item from ((select order_id, items from bronze.orders) as o lateral view explode(o.items) i as item);
full reason=PARSE_UNSUPPORTED;

# title: a comma binds less than the right join behind it
select r.restaurant_id, d.dish_id, o.order_id from bronze.orders as o, bronze.dishes as d right join bronze.restaurants as r on d.restaurant_id = r.restaurant_id;
full reason=PARSE_UNSUPPORTED;

# title: USING of a left join is the column of the preserved side
select restaurant_id, count(distinct o.order_id) as orders, max(r.restaurant_name) as name from bronze.orders as o left join bronze.restaurants as r using (restaurant_id) group by restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a coalesce with the optional side first is one of two columns
select coalesce(r.restaurant_id, 0, o.restaurant_id) as restaurant_id, max(o.amount) as most from bronze.orders as o left join bronze.restaurants as r on o.restaurant_id = r.restaurant_id group by 1;
full reason=KEY_NOT_IN_OUTPUT;

# title: a chain of left joins
select o.customer_id, max(t.quantity_sold) as most from bronze.orders as o left join bronze.restaurants as r on o.restaurant_id = r.restaurant_id left join mart.dish_totals as t on r.restaurant_id = t.restaurant_id group by o.customer_id;
region keys=(customer_id) unique=(customer_id);

# title: the newest rows of each key, by a join
select o.order_id, o.restaurant_id, o.amount from bronze.orders as o join (select restaurant_id, max(ordered_at) as ordered_at from bronze.orders group by restaurant_id) as n on o.restaurant_id = n.restaurant_id and o.ordered_at = n.ordered_at;
region keys=(order_id, restaurant_id, amount) unique=(order_id);

# title: a semi join with the largest of each key
select o.restaurant_id, o.amount from bronze.orders as o left semi join (select restaurant_id, max(amount) as amount from bronze.orders group by restaurant_id) as n on o.restaurant_id = n.restaurant_id and o.amount = n.amount;
region keys=(restaurant_id, amount);

# title: a join with an aggregate by its total alone
select o.order_id, n.restaurant_id from bronze.orders as o join (select restaurant_id, max(amount) as amount from bronze.orders group by restaurant_id) as n on o.amount = n.amount;
signed rows lookups=1/1 keys=(order_id) unique=(order_id, restaurant_id) stage_1=(region keys=(restaurant_id) unique=(restaurant_id)) last=(select o.order_id, n.restaurant_id from bronze.orders as o join (select * from stage_1) as n on o.amount = n.amount);

# title: rows beside a total that is a model of its own
select orders.order_id, orders.amount / totals.quantity_sold as share from bronze.orders as orders cross join mart.dish_totals as totals;
signed rows lookups=0/1 keys=(order_id);
