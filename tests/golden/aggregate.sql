# title: counts and decimal sums are additive
select restaurant_id, count(*) as orders, sum(amount) as amount from bronze.orders group by 1;
signed groups keys=(restaurant_id) unique=(restaurant_id);

# title: without a count(*) an empty group cannot be told
select restaurant_id, sum(amount) as amount from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a cast and a default are seen through
select restaurant_id, count(*) as orders, cast(coalesce(sum(amount), 0) as decimal(18, 2)) as amount from bronze.orders group by 1;
signed groups keys=(restaurant_id) unique=(restaurant_id);

# title: totals of the rows of a filter are additive
select restaurant_id, count(*) as orders, count(*) filter (where status = 'placed') as placed, sum(amount) filter (where status = 'placed') as spent from bronze.orders group by 1;
signed groups keys=(restaurant_id) unique=(restaurant_id);

# title: a filtered count does not tell which groups are empty
select restaurant_id, count(*) filter (where status = 'placed') as placed from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: min, max and avg are recomputed by key
select restaurant_id, min(amount) as lowest, max(amount) as highest, avg(amount) as mean from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: an exact distinct count is recomputed by key
select restaurant_id, count(distinct customer_id) as customers from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a sketch is recomputed by key
select restaurant_id, date_trunc('hour', ordered_at) as hour_started_at, hll_sketch_agg(customer_id) as sketch from bronze.orders group by 1, 2;
region keys=(restaurant_id, hour_started_at) unique=(restaurant_id, hour_started_at);

# title: panes by window()
select restaurant_id, window(ordered_at, '5 minutes').start as pane_started_at, count(*) as orders from bronze.orders group by 1, 2;
signed groups keys=(restaurant_id, pane_started_at) unique=(restaurant_id, pane_started_at);

# title: window is also the name of a column
select restaurant_id, window.start as pane_started_at, max(amount) as highest from bronze.orders group by restaurant_id, window(ordered_at, '5 minutes');
region keys=(restaurant_id, pane_started_at);

# title: having is recomputed by key
select restaurant_id, count(*) as orders from bronze.orders group by 1 having count(*) > 2;
region keys=(restaurant_id) unique=(restaurant_id);

# title: GROUP BY ALL
select restaurant_id, status, count(*) as orders from bronze.orders group by all;
signed groups keys=(restaurant_id, status) unique=(restaurant_id, status);

# title: an aggregate of an aggregate is confined by the common key
select restaurant_id, max(n) as most from (select restaurant_id, customer_id, count(*) as n from bronze.orders group by 1, 2) as per_customer group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a key that is not in the output is lost
select count(*) as orders from bronze.orders group by restaurant_id;
signed rows keys=(orders) stage_1=(signed groups keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select * except (`__livemart_key_1`) from stage_1);

# title: no GROUP BY depends on every row
select count(*) as orders from bronze.orders;
signed groups;

# title: the maximum of grouping sets that hold a grand total
select restaurant_id, max(amount) as most from bronze.orders group by rollup(restaurant_id);
full reason=GLOBAL_AGG;

# title: grouping sets of which all have a key
select restaurant_id, customer_id, max(amount) as most from bronze.orders group by restaurant_id, rollup(customer_id);
region keys=(restaurant_id);

# title: grouping sets that are told apart
select restaurant_id, customer_id, grouping_id() as level, count(*) as orders from bronze.orders group by cube(restaurant_id, customer_id);
signed groups unique=(restaurant_id, customer_id, level);

# title: the same grouping set twice
select restaurant_id, count(*) as orders from bronze.orders group by grouping sets (restaurant_id, restaurant_id);
full reason=GLOBAL_AGG;

# title: grouping sets hold a grand total
select restaurant_id, count(*) as orders from bronze.orders group by rollup(restaurant_id);
signed rows keys=(restaurant_id, orders) stage_1=(signed groups unique=(__livemart_key_1, __livemart_set_3)) last=(select __livemart_key_1 as restaurant_id, __livemart_total_2 as orders from stage_1);

# title: collect_list has its elements in any order
select restaurant_id, collect_list(order_id) as ids from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: a session depends on its neighbours, within the key
select restaurant_id, session_window(ordered_at, '10 minutes').start as started_at, count(*) as orders from bronze.orders group by restaurant_id, session_window(ordered_at, '10 minutes');
region keys=(restaurant_id);

# title: a session without another key is not confined
select session_window(ordered_at, '10 minutes').start as started_at, count(*) as orders from bronze.orders group by session_window(ordered_at, '10 minutes');
full reason=KEY_NOT_IN_OUTPUT;

# title: max_by over an order that can tie
select restaurant_id, max_by(status, ordered_at) as status from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: max_by over an order that ends in a unique column
select restaurant_id, max_by(status, struct(ordered_at, order_id)) as status from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: what is collected and sorted is settled
select restaurant_id, sort_array(collect_list(status)) as statuses, size(collect_set(customer_id)) as customers from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: collect_set has its elements in any order
select restaurant_id, collect_set(status) as statuses from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: a list within an order that can tie
select restaurant_id, listagg(status, ',') within group (order by ordered_at) as statuses from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: a list in the order of its own elements
select restaurant_id, listagg(status, ',') within group (order by status) as statuses from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: any() of a column is an aggregate
select any(amount > 10) as is_any from bronze.orders;
full reason=GLOBAL_AGG;

# title: HAVING makes one group of all rows
select 1 as one from bronze.orders having true;
full reason=GLOBAL_AGG;

# title: a subquery among the keys
select restaurant_id, count(*) as orders from bronze.orders group by restaurant_id, (select max(dish_id) from bronze.dishes);
region keys=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED stage_1=(full reason=GLOBAL_AGG) last=(select restaurant_id, count(*) as orders from bronze.orders as `orders` group by restaurant_id, (select * from stage_1));

# title: window() as the first key
select window.start as started_at, count(*) as orders, max(amount) as most from bronze.orders group by window(ordered_at, '5 minutes');
region keys=(started_at);

# title: sliding windows repeat rows, so they have no rule outside GROUP BY
select order_id, window(ordered_at, '1 hour', '5 minutes').start as started_at from bronze.orders;
full reason=PARSE_UNSUPPORTED;

# title: an aggregate that the parser does not know is no key
select amount, mean(amount) as same, every(amount > 0) as is_positive from bronze.orders group by amount;
region keys=(amount) unique=(amount);

# title: a default that is no number
select restaurant_id, coalesce(max(status), 'none') as status from bronze.orders group by restaurant_id;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a session under an alias of a subquery confines nothing
select s.w.start as started_at, count(*) as orders from (select session_window(ordered_at, '10 minutes') as w, order_id from bronze.orders) as s group by s.w;
full reason=KEY_NOT_IN_OUTPUT;

# title: a session under an alias within another key
with s as (select restaurant_id, session_window(ordered_at, '10 minutes') as w from bronze.orders), r as (select restaurant_id, w as period from s) select restaurant_id, period.start as started_at, period.end as ended_at, count(*) as orders from r group by restaurant_id, period;
region keys=(restaurant_id);

# title: a session in a field of a struct
select s.z.period.start as started_at, count(*) as orders from (select struct(session_window(ordered_at, '10 minutes') as period, status) as z from bronze.orders) as s group by s.z;
full reason=KEY_NOT_IN_OUTPUT;

# title: a session in one branch of a union
select u.w, count(*) as orders from (select session_window(ordered_at, '10 minutes') as w from bronze.orders union all select window(ordered_at, '10 minutes') as w from bronze.orders) as u group by u.w;
full reason=KEY_NOT_IN_OUTPUT;

# title: a session among the sides of a join
select s.w.start as started_at, count(*) as orders from (select session_window(ordered_at, '10 minutes') as w, restaurant_id from bronze.orders) as s join bronze.restaurants using (restaurant_id) group by s.w;
full reason=KEY_NOT_IN_OUTPUT;

# title: a time of a session that became a number
select s.started, count(*) as orders from (select unix_timestamp(session_window(ordered_at, '10 minutes').start) as started from bronze.orders) as s group by s.started;
full reason=KEY_NOT_IN_OUTPUT;

# title: functions that the parser reads as others are not the same expression
select to_date(status) as day, count(*) as orders from (select to_date(status, 'MM/dd/yyyy') as status from bronze.orders) as o group by to_date(status);
signed groups keys=(day) unique=(day);

# title: the unit of a truncated time is a column
select o.t, count(*) as orders from (select date_trunc(status, ordered_at) as t from bronze.orders) as o group by o.t;
signed groups keys=(t) unique=(t);

# title: what is left of a list, or made of each element, is settled if it is counted or sorted
select restaurant_id, size(filter(collect_list(amount), x -> x > 5)) as dear, array_sort(transform(collect_list(amount), x -> x * 2)) as doubled from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: the place of an element depends on the order of rows
select restaurant_id, array_sort(transform(collect_list(amount), (x, i) -> x * i)) as moved from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) reason=NONDETERMINISTIC_AGG;

# title: a pivot has one row for each group
select * from (select restaurant_id, status, amount from bronze.orders) pivot (sum(amount) for status in ('placed', 'delivered'));
region keys=(restaurant_id) unique=(restaurant_id);

# title: an unpivot is linear
select order_id, measure, value from bronze.orders unpivot (value for measure in (amount, restaurant_id));
signed rows keys=(order_id);
