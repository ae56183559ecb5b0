# title: the newest row by a lateral subquery
select restaurants.restaurant_id, newest.order_id from bronze.restaurants as restaurants cross join lateral (select orders.order_id from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id order by orders.ordered_at desc, orders.order_id limit 1) as newest;
region keys=(restaurant_id);

# title: the newest row by a lateral subquery, which may tie
select restaurants.restaurant_id, newest.status from bronze.restaurants as restaurants left join lateral (select orders.status from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id and orders.amount > 1 order by orders.ordered_at desc limit 1) as newest on true;
region keys=(restaurant_id) reason=NONDETERMINISTIC_ORDER;

# title: a total by a lateral subquery
select restaurants.restaurant_id, totals.spent from bronze.restaurants as restaurants, lateral (select sum(orders.amount) as spent from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id) as totals;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a scalar subquery by key
select restaurant_id, coalesce((select max(orders.amount) from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id), 0) as most from bronze.restaurants as restaurants;
region keys=(restaurant_id) unique=(restaurant_id);

# title: the newest value by a scalar subquery
select restaurant_id, (select orders.status from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id order by orders.ordered_at limit 1) as status from bronze.restaurants as restaurants;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_ORDER;

# title: NOT EXISTS
select dish_id from bronze.dishes as dishes where not exists (select 1 from bronze.restaurants as restaurants where restaurants.restaurant_id = dishes.restaurant_id and restaurants.currency_code = 'EUR');
region keys=(dish_id) unique=(dish_id);

# title: EXISTS among other conditions
select dish_id, dish_name from bronze.dishes as dishes where dish_name is null or exists (select 1 from bronze.restaurants as restaurants where restaurants.restaurant_id = dishes.restaurant_id);
region keys=(dish_id, dish_name) unique=(dish_id);

# title: IN a column
select order_id from bronze.orders where restaurant_id in (select restaurant_id from bronze.restaurants where currency_code = 'EUR');
region keys=(order_id) unique=(order_id);

# title: IN the first rows compares all of them
select order_id from bronze.orders where restaurant_id in (select restaurant_id from bronze.restaurants order by restaurant_name limit 3);
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: IN beside OR keeps no row where it is NULL
select order_id from bronze.orders where status = 'placed' or (amount > 5 and restaurant_id in (select restaurant_id from bronze.restaurants));
region keys=(order_id) unique=(order_id);

# title: IN that decides a CASE
select order_id, case when restaurant_id in (select restaurant_id from bronze.restaurants) then amount end as known from bronze.orders;
region keys=(order_id) unique=(order_id);

# title: IN may be NULL where a CASE compares it
select order_id, case restaurant_id in (select restaurant_id from bronze.restaurants) when false then amount end as unknown from bronze.orders;
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: IN of a total has no rule
select customer_id, case when max(restaurant_id) in (select restaurant_id from bronze.restaurants) then 1 end as is_known from bronze.orders group by customer_id;
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: EXISTS whose equality stands in brackets
select dish_id from bronze.dishes as dishes where exists (select 1 from bronze.restaurants as restaurants where restaurants.currency_code = 'EUR' and (restaurants.restaurant_id = dishes.restaurant_id and (restaurants.restaurant_name is not null)));
region keys=(dish_id) unique=(dish_id);

# title: EXISTS without an equality
select dish_id from bronze.dishes as dishes where exists (select 1 from bronze.restaurants as restaurants where restaurants.restaurant_id > dishes.restaurant_id);
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: a subquery in a subquery
select dish_id from bronze.dishes as dishes where exists (select 1 from bronze.orders as orders where orders.restaurant_id = dishes.restaurant_id and orders.amount = (select max(others.amount) from bronze.orders as others where others.customer_id = orders.customer_id));
region keys=(dish_id) unique=(dish_id);

# title: groups of rows that ask
select dishes.restaurant_id, count(*) as dishes from bronze.dishes as dishes where exists (select 1 from bronze.orders as orders where orders.restaurant_id = dishes.restaurant_id) group by dishes.restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id);

# title: the newest row of each by a pair
select order_id from bronze.orders where (restaurant_id, ordered_at) in (select restaurant_id, max(ordered_at) from bronze.orders group by restaurant_id);
region keys=(order_id) unique=(order_id);

# title: a pair without groups
select dish_id from bronze.dishes as dishes where (dishes.restaurant_id, dishes.dish_name) in (select restaurant_id, restaurant_name from bronze.restaurants);
region keys=(dish_id) unique=(dish_id);

# title: the newest value before a row, in an order that a unique column ends
select restaurant_id, (select max_by(orders.status, struct(orders.ordered_at, orders.order_id)) from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id) as status from bronze.restaurants as restaurants;
region keys=(restaurant_id) unique=(restaurant_id);

# title: the newest value before a row, in an order that may tie
select restaurant_name, (select max_by(orders.status, orders.ordered_at) from bronze.orders as orders where orders.restaurant_id = restaurants.restaurant_id) as status from bronze.restaurants as restaurants;
full reason=NONDETERMINISTIC_AGG;

# title: rows that tie have the picked value alike
select d.dish_id, (select o.status from bronze.orders as o where o.restaurant_id = d.restaurant_id order by o.ordered_at desc, o.status limit 1) as newest from bronze.dishes as d;
region keys=(dish_id) unique=(dish_id);

# title: lateral rows that tie are alike
select d.dish_id, n.at from bronze.dishes as d left join lateral (select o.ordered_at as at from bronze.orders as o where o.restaurant_id = d.restaurant_id order by at desc limit 2) as n;
region keys=(dish_id);
