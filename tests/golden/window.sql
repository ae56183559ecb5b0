# title: a row number with a unique last sort column is local in its partition
select restaurant_id, dish_id, row_number() over (partition by restaurant_id order by quantity_sold desc, dish_id asc) as dish_rank from mart.dish_totals;
region keys=(restaurant_id) unique=(restaurant_id, dish_rank);

# title: a row number that can tie is local in its partition as any other
select restaurant_id, row_number() over (partition by restaurant_id order by quantity_sold desc) as dish_rank from mart.dish_totals;
region keys=(restaurant_id) unique=(restaurant_id, dish_rank) reason=NONDETERMINISTIC_ORDER;

# title: rank is the same under ties
select restaurant_id, dish_id, rank() over (partition by restaurant_id order by quantity_sold desc) as dish_rank from mart.dish_totals;
region keys=(restaurant_id) unique=(restaurant_id, dish_id);

# title: a RANGE frame is local in time
select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at range between interval 24 hours preceding and current row) as orders_24h from mart.order_panes;
region keys=(restaurant_id) time=pane_started_at before=86400s after=0s unique=(restaurant_id, pane_started_at);

# title: frames side by side widen by the widest
select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at range between interval 1 hour preceding and interval 5 minutes following) as a, sum(order_count) over (partition by restaurant_id order by pane_started_at range between interval 168 hours preceding and current row) as b from mart.order_panes;
region keys=(restaurant_id) time=pane_started_at before=604800s after=300s unique=(restaurant_id, pane_started_at);

# title: a descending order swaps the margins
select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at desc range between interval 1 hour preceding and current row) as a from mart.order_panes;
region keys=(restaurant_id) time=pane_started_at before=0s after=3600s unique=(restaurant_id, pane_started_at);

# title: an unbounded frame is local in the partition alone
select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at) as running from mart.order_panes;
region keys=(restaurant_id) unique=(restaurant_id, pane_started_at) reason=WINDOW_UNBOUNDED;

# title: ROWS frames may tie
select restaurant_id, sum(amount) over (partition by restaurant_id order by ordered_at rows between 2 preceding and current row) as a from bronze.orders;
region keys=(restaurant_id) reason=NONDETERMINISTIC_ORDER;

# title: lag over a total order
select order_id, customer_id, lag(order_id) over (partition by customer_id order by ordered_at, order_id) as previous from bronze.orders;
region keys=(customer_id) unique=(order_id);

# title: two partitions share their common key
select restaurant_id, order_id, count(*) over (partition by restaurant_id, status) as a, count(*) over (partition by restaurant_id) as b from bronze.orders;
region keys=(restaurant_id) unique=(order_id);

# title: two partitions without a common key are recomputed in full
select order_id, restaurant_id, customer_id, count(*) over (partition by customer_id) as a, count(*) over (partition by restaurant_id) as b from bronze.orders;
region keys=(restaurant_id) unique=(order_id) stage_1=(region keys=(__livemart_column_4) unique=(__livemart_column_2)) last=(select __livemart_column_2 as order_id, __livemart_column_3 as restaurant_id, __livemart_column_4 as customer_id, __livemart_window_1 as a, count(*) over (partition by __livemart_column_3) as b from stage_1);

# title: no PARTITION BY
select order_id, row_number() over (order by order_id) as place from bronze.orders;
full reason=WINDOW_WITHOUT_PARTITION_BY;

# title: a named window
select restaurant_id, pane_started_at, sum(order_count) over w as a from mart.order_panes window w as (partition by restaurant_id order by pane_started_at range between interval 1 hour preceding and current row);
region keys=(restaurant_id) time=pane_started_at before=3600s after=0s unique=(restaurant_id, pane_started_at);

# title: the first of each key
select order_id, customer_id from (select *, row_number() over (partition by customer_id order by ordered_at desc, order_id) as place from bronze.orders) as ranked where place = 1;
region keys=(customer_id) unique=(order_id);

# title: LIMIT
select order_id from bronze.orders order by order_id limit 3;
full reason=GLOBAL_LIMIT;

# title: LIMIT hides no other reason
select order_id, row_number() over (order by order_id) as place from (select order_id from bronze.orders limit 3) order by order_id limit 3;
full reason=GLOBAL_LIMIT reason=LIMIT_WITHOUT_ORDER reason=WINDOW_WITHOUT_PARTITION_BY;

# title: LIMIT without an order
select order_id from bronze.orders limit 3;
full reason=LIMIT_WITHOUT_ORDER;

# title: QUALIFY
select order_id, customer_id from bronze.orders qualify row_number() over (partition by customer_id order by ordered_at, order_id) = 1;
region keys=(customer_id) unique=(order_id);

# title: the last value that is not NULL
select order_id, restaurant_id, last_value(amount) ignore nulls over (partition by restaurant_id order by ordered_at, order_id) as known from bronze.orders;
region keys=(restaurant_id) unique=(order_id);

# title: a filtered window function
select order_id, restaurant_id, count(*) filter (where status = 'placed') over (partition by restaurant_id) as placed from bronze.orders;
region keys=(restaurant_id) unique=(order_id);

# title: a frame below the other side of a join lends no time to the region
select orders.restaurant_id, max(orders.amount) as most from bronze.orders as orders left semi join (select customer_id, sum(amount) over (partition by customer_id order by ordered_at range between interval 1 hour preceding and current row) as spent from bronze.orders) as running on orders.customer_id = running.customer_id and running.spent > 10 group by 1;
region keys=(restaurant_id) unique=(restaurant_id);

# title: a frame below a join by key and time reaches rows of other times
select p.restaurant_id, p.pane_started_at, t.order_id, p.recent from (select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at range between interval 1 hour preceding and current row) as recent from mart.order_panes) as p join bronze.orders as t on t.restaurant_id = p.restaurant_id and t.ordered_at = p.pane_started_at;
region keys=(restaurant_id) time=pane_started_at before=3600s after=0s unique=(restaurant_id, pane_started_at, order_id);

# title: a frame on the right of a left join by key and time, another key in the output
select t.order_id, t.customer_id, p.recent from bronze.orders as t left join (select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at range between interval 1 hour preceding and current row) as recent from mart.order_panes) as p on t.restaurant_id = p.restaurant_id and t.ordered_at = p.pane_started_at;
region keys=(order_id, customer_id) unique=(order_id);

# title: a frame below a join by time alone
select t.order_id, t.customer_id, p.recent from bronze.orders as t join (select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id order by pane_started_at range between interval 1 hour preceding and current row) as recent from mart.order_panes) as p on t.ordered_at = p.pane_started_at;
signed rows lookups=1/1 keys=(order_id, customer_id) stage_1=(region keys=(restaurant_id) time=pane_started_at before=3600s after=0s unique=(restaurant_id, pane_started_at)) last=(select t.order_id, t.customer_id, p.recent from bronze.orders as t join (select * from stage_1) as p on t.ordered_at = p.pane_started_at);

# title: how many values so far, as a window has no count(distinct ...)
select order_id, restaurant_id, size(collect_set(customer_id) over (partition by restaurant_id order by ordered_at)) as customers from bronze.orders;
region keys=(restaurant_id) unique=(order_id) reason=WINDOW_UNBOUNDED;

# title: a list in the order of its window
select order_id, restaurant_id, collect_list(status) over (partition by restaurant_id order by ordered_at, order_id) as statuses from bronze.orders;
region keys=(restaurant_id) unique=(order_id) reason=WINDOW_UNBOUNDED;

# title: a list in an order of its window that may tie
select order_id, restaurant_id, collect_list(status) over (partition by restaurant_id order by ordered_at) as statuses from bronze.orders;
full reason=NONDETERMINISTIC_AGG;
