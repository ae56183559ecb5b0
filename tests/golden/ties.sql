# title: the newest row of each key, whichever it is
select customer_id, status, amount from (select *, row_number() over (partition by customer_id order by ordered_at desc) as place from bronze.orders) as ranked where place = 1;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: the newest row by QUALIFY
select customer_id, status from bronze.orders qualify row_number() over (partition by customer_id order by ordered_at desc) = 1;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: the newest row by max_by, joined
select customers.customer_id, customers.status, restaurants.restaurant_name from (select customer_id, max_by(status, ordered_at) as status, max_by(restaurant_id, ordered_at) as restaurant_id from bronze.orders group by customer_id) as customers left join bronze.restaurants as restaurants on customers.restaurant_id = restaurants.restaurant_id;
region keys=(customer_id) unique=(customer_id) reason=NONDETERMINISTIC_AGG reason=NONDETERMINISTIC_AGG;

# title: a history by lag, joined before
select orders.customer_id, orders.status, orders.ordered_at as valid_from, lag(orders.ordered_at) over (partition by orders.customer_id order by orders.ordered_at desc) as valid_to, restaurants.currency_code from bronze.orders as orders left join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: gaps filled by the last known value
select customer_id, ordered_at, last_value(amount, true) over (partition by customer_id order by ordered_at rows between unbounded preceding and current row) as known from bronze.orders;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: facts beside a pick keep the key of the pick together
select orders.order_id, orders.customer_id, newest.status from bronze.orders as orders join (select customer_id, status from bronze.orders qualify row_number() over (partition by customer_id order by ordered_at desc) = 1) as newest on orders.customer_id = newest.customer_id;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: facts beside a pick whose key is not in the output
select orders.order_id, newest.status from bronze.orders as orders join (select customer_id, status from bronze.orders qualify row_number() over (partition by customer_id order by ordered_at desc) = 1) as newest on orders.customer_id = newest.customer_id;
signed rows lookups=1/1 keys=(order_id) reason=NONDETERMINISTIC_ORDER stage_1=(region keys=(customer_id) reason=NONDETERMINISTIC_ORDER) last=(select orders.order_id, newest.status from bronze.orders as orders join (select * from stage_1) as newest on orders.customer_id = newest.customer_id);

# title: groups above a pick by another key
select status, count(*) as customers from (select customer_id, status from bronze.orders qualify row_number() over (partition by customer_id order by ordered_at desc) = 1) as newest group by status;
signed groups keys=(status) unique=(status) reason=NONDETERMINISTIC_ORDER stage_1=(region keys=(customer_id) reason=NONDETERMINISTIC_ORDER) last=(select status, count(*) as customers from (select * from stage_1) as newest group by status);

# title: groups above a pick by its key
select customer_id, count(*) as changes from (select customer_id, lag(status) over (partition by customer_id order by ordered_at) as before from bronze.orders) as steps where before is not null group by customer_id;
region keys=(customer_id) unique=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: a key that the window itself computes
select before, count(*) as times from (select customer_id, lag(status) over (partition by customer_id order by ordered_at) as before from bronze.orders) as steps group by before;
signed groups keys=(before) unique=(before) reason=NONDETERMINISTIC_ORDER stage_1=(region keys=(customer_id) reason=NONDETERMINISTIC_ORDER) last=(select before, count(*) as times from (select * from stage_1) as steps group by before);

# title: two branches over one pick are one decision
with newest as (select customer_id, status, amount from bronze.orders qualify row_number() over (partition by customer_id order by ordered_at desc) = 1) select customer_id, 'status' as field, status as content from newest union all select customer_id, 'amount' as field, cast(amount as string) as content from newest;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: a pick above a pick keeps the common key
select customer_id, restaurant_id, status from (select * from bronze.orders qualify row_number() over (partition by customer_id, restaurant_id order by ordered_at desc) = 1) as newest qualify row_number() over (partition by customer_id order by amount desc) = 1;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER reason=NONDETERMINISTIC_ORDER;

# title: a frame of time beside an order that may tie is recomputed by key alone
select customer_id, ordered_at, sum(amount) over (partition by customer_id order by ordered_at range between interval 1 hour preceding and current row) as spent, row_number() over (partition by customer_id order by ordered_at) as place from bronze.orders;
region keys=(customer_id) unique=(customer_id, place) reason=NONDETERMINISTIC_ORDER;

# title: a first value without any order
select restaurant_id, any_value(status) as status, count(*) as orders from bronze.orders group by restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: a list in any order is one decision of its group
select restaurant_id, collect_list(status) as statuses from bronze.orders group by restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: a list in any order beside the rows of another table
select restaurants.restaurant_id, restaurants.restaurant_name, array_join(lists.statuses, ', ') as statuses from bronze.restaurants as restaurants left join (select restaurant_id, collect_set(status) as statuses from bronze.orders group by restaurant_id) as lists on restaurants.restaurant_id = lists.restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: groups above the elements of a list
select status, count(*) as restaurants from (select restaurant_id, collect_list(status) as statuses from bronze.orders group by restaurant_id) as lists lateral view explode(statuses) elements as status group by status;
signed groups unique=(status) reason=NONDETERMINISTIC_AGG stage_1=(region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG) last=(select status, count(*) as restaurants from (select * from stage_1) as lists lateral view explode(statuses) elements as status group by status);

# title: a join by a list in any order finds other rows in another order
select restaurants.restaurant_name, lists.restaurant_id from (select restaurant_id, array_join(collect_list(status), '') as statuses from bronze.orders group by restaurant_id) as lists left join bronze.restaurants as restaurants on restaurants.restaurant_name = lists.statuses;
signed rows lookups=1/1 keys=(restaurant_id) reason=NONDETERMINISTIC_AGG stage_1=(region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG) last=(select restaurants.restaurant_name, lists.restaurant_id from (select * from stage_1) as lists left join bronze.restaurants as restaurants on restaurants.restaurant_name = lists.statuses);

# title: what a pick is joined by may be that of any row of its group
select steps.customer_id, steps.ordered_at, restaurants.restaurant_name from (select customer_id, ordered_at, lag(restaurant_id) over (partition by customer_id order by ordered_at) as restaurant_id from bronze.orders) as steps left join bronze.restaurants as restaurants on steps.restaurant_id = restaurants.restaurant_id;
region keys=(customer_id) reason=NONDETERMINISTIC_ORDER;

# title: two picks of one join key may come from two rows
select newest.customer_id, dishes.dish_name from (select customer_id, max_by(restaurant_id, ordered_at) as restaurant_id, min_by(order_id, ordered_at) as dish_id from bronze.orders group by customer_id) as newest join bronze.dishes as dishes on dishes.dish_id = newest.dish_id and dishes.restaurant_id = newest.restaurant_id;
signed rows lookups=1/1 keys=(customer_id) unique=(customer_id) reason=NONDETERMINISTIC_AGG reason=NONDETERMINISTIC_AGG stage_1=(region keys=(customer_id) unique=(customer_id) reason=NONDETERMINISTIC_AGG reason=NONDETERMINISTIC_AGG) last=(select newest.customer_id, dishes.dish_name from (select * from stage_1) as newest join bronze.dishes as dishes on dishes.dish_id = newest.dish_id and dishes.restaurant_id = newest.restaurant_id);

# title: a field of a picked struct is what a join goes by
select newest.customer_id, newest.latest.status as status, restaurants.restaurant_name from (select customer_id, max_by(struct(status, restaurant_id), ordered_at) as latest from bronze.orders group by customer_id) as newest left join bronze.restaurants as restaurants on newest.latest.restaurant_id = restaurants.restaurant_id;
region keys=(customer_id) unique=(customer_id) reason=NONDETERMINISTIC_AGG;
