# title: totals of a window against the clock
select restaurant_id, count(*) as panes, sum(order_count) as orders from mart.order_panes where pane_started_at >= (select clock.as_of from livemart.clock as clock) - interval 24 hours and pane_started_at < (select clock.as_of from livemart.clock as clock) group by 1;
signed groups keys=(restaurant_id) within[0]=(from __clock__ - interval 24 hours, to __clock__) unique=(restaurant_id) slices=(pane_started_at);

# title: the clock moved inside its subquery
select restaurant_id, count(*) as panes from mart.order_panes where pane_started_at >= (select clock.as_of - interval 24 hours from livemart.clock as clock) group by 1;
signed groups keys=(restaurant_id) within[0]=(from (__clock__ - interval 24 hours)) unique=(restaurant_id) slices=(pane_started_at);

# title: the clock by a cross join
select orders.restaurant_id, count(*) as n from bronze.orders as orders cross join livemart.clock as clock where orders.ordered_at between clock.as_of - interval 1 hour and clock.as_of group by 1;
signed groups keys=(restaurant_id) within[0]=(from __clock__ - interval 1 hour, to __clock__) unique=(restaurant_id) slices=(ordered_at);

# title: whole hours
select restaurant_id, count(*) as panes from mart.order_panes where pane_started_at >= date_trunc('hour', (select clock.as_of from livemart.clock as clock)) - interval 24 hours group by 1;
signed groups keys=(restaurant_id) within[0]=(from date_trunc('hour', __clock__) - interval 24 hours) unique=(restaurant_id) slices=(pane_started_at);

# title: a time made of a stored time
select order_id from bronze.orders where date_trunc('hour', ordered_at) >= (select clock.as_of from livemart.clock as clock) - interval 24 hours;
signed rows keys=(order_id) within[0]=(from __clock__ - interval 24 hours) unique=(order_id) slices=(ordered_at);

# title: a ranking within a window
select restaurant_id, dish_id, rank() over (partition by restaurant_id order by sold desc) as place from (select orders.restaurant_id, orders.customer_id as dish_id, count(*) as sold from bronze.orders as orders where orders.ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 24 hours group by 1, 2) as totals;
region keys=(restaurant_id) within[0]=(from __clock__ - interval 24 hours) unique=(restaurant_id, dish_id) slices=(ordered_at);

# title: the clock in the output changes every row
select restaurant_id, (select clock.as_of from livemart.clock as clock) as as_of from bronze.restaurants;
signed rows keys=(restaurant_id) unique=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: a scalar subquery with an aggregate
select order_id from bronze.orders where amount > (select avg(amount) from bronze.orders);
signed rows keys=(order_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED stage_1=(full reason=GLOBAL_AGG) last=(select order_id from bronze.orders as `orders` where amount > (select * from stage_1));

# title: the clock of a cross join in the output changes every row
select orders.order_id, clock.as_of from bronze.orders as orders cross join livemart.clock as clock;
signed rows keys=(order_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: the clock in HAVING
select orders.restaurant_id, max(orders.ordered_at) as last_at from bronze.orders as orders cross join livemart.clock as clock group by 1 having max(orders.ordered_at) < max(clock.as_of) - interval 1 day;
region keys=(restaurant_id) unique=(restaurant_id) slices=(ordered_at);

# title: the clock in an argument of an aggregate
select orders.restaurant_id, count(*) as orders, sum(case when orders.ordered_at >= clock.as_of - interval 1 hour then 1 else 0 end) as recent from bronze.orders as orders cross join livemart.clock as clock group by 1;
signed groups keys=(restaurant_id) unique=(restaurant_id) slices=(ordered_at);

# title: a flag against the clock in the argument of a sum
with placed as (select restaurant_id, amount, ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour as is_recent from bronze.orders) select restaurant_id, count(*) as orders, coalesce(sum(case when is_recent then amount end), 0) as recent_amount from placed group by 1;
signed groups keys=(restaurant_id) unique=(restaurant_id) slices=(ordered_at);

# title: the clock moved by the subquery that is joined
select orders.order_id from bronze.orders as orders cross join (select as_of - interval 1 day as as_of from livemart.clock) as clock where orders.ordered_at >= clock.as_of;
signed rows keys=(order_id) within[0]=(from (__clock__ - interval 1 day)) unique=(order_id) slices=(ordered_at);

# title: a ranking within a window of whole hours, both ends closed by the clock
select order_id, restaurant_id, rank() over (partition by restaurant_id order by amount desc) as place from bronze.orders where date_trunc('hour', ordered_at) between (select clock.as_of from livemart.clock as clock) - interval 25 hours and (select clock.as_of from livemart.clock as clock) - interval 1 hour;
region keys=(restaurant_id) within[0]=(from __clock__ - interval 25 hours, to __clock__ - interval 1 hour) unique=(order_id) slices=(ordered_at);

# title: two windows of one common table expression
with panes as (select * from mart.order_panes) select restaurant_id, 1 as hours, max(order_count) as most from panes where pane_started_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour group by 1 union all select restaurant_id, 24 as hours, max(order_count) as most from panes where (select clock.as_of from livemart.clock as clock) - interval 24 hours <= pane_started_at group by 1;
region keys=(restaurant_id, hours) within[0]=(from __clock__ - interval 1 hour or from __clock__ - interval 24 hours) unique=(restaurant_id, hours) slices=(pane_started_at);

# title: a window and all of it
with panes as (select * from mart.order_panes) select restaurant_id, 1 as hours, max(order_count) as most from panes where pane_started_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour group by 1 union all select restaurant_id, 0 as hours, max(order_count) as most from panes group by 1;
region keys=(restaurant_id, hours) unique=(restaurant_id, hours) slices=(pane_started_at);

# title: rows outside a window that is above a ranking still take a place
select * from (select order_id, restaurant_id, ordered_at, rank() over (partition by restaurant_id order by amount desc) as place from bronze.orders) as ranked where ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour;
region keys=(restaurant_id) unique=(order_id) slices=(ordered_at);

# title: a window above a join
select restaurants.restaurant_name, max(orders.amount) as most from bronze.orders as orders left join bronze.restaurants as restaurants on orders.restaurant_id = restaurants.restaurant_id where orders.ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour group by 1;
full reason=KEY_NOT_IN_OUTPUT;

# title: a window below a join
select restaurants.restaurant_id, max(orders.amount) as most from bronze.restaurants as restaurants left join (select * from bronze.orders where ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour) as orders on orders.restaurant_id = restaurants.restaurant_id group by 1;
region keys=(restaurant_id) within[1]=(from __clock__ - interval 1 hour) unique=(restaurant_id) slices=(ordered_at);

# title: rows that say whether the clock has passed them
select order_id, ordered_at + interval 10 minutes <= (select clock.as_of from livemart.clock as clock) as is_over, case when ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour then 'new' else 'old' end as age from bronze.orders;
signed rows keys=(order_id) unique=(order_id) slices=(ordered_at);

# title: groups that say whether the clock has passed them
select window(ordered_at, '5 minutes').end as window_end, restaurant_id, count(*) as orders, sum(amount) as sales, coalesce(window(ordered_at, '5 minutes').end <= (select clock.as_of from livemart.clock as clock) - interval 10 minutes, false) as is_final from bronze.orders group by window(ordered_at, '5 minutes'), restaurant_id;
region keys=(window_end, restaurant_id) slices=(ordered_at);

# title: whether the clock has passed them is one of the keys
select window(ordered_at, '5 minutes').end as window_end, restaurant_id, count(*) as orders, window(ordered_at, '5 minutes').end <= (select clock.as_of from livemart.clock as clock) as is_final from bronze.orders group by all;
signed groups keys=(window_end, restaurant_id) unique=(window_end, restaurant_id, is_final) slices=(ordered_at);

# title: whether the clock has passed them is the only key
select ordered_at <= (select clock.as_of from livemart.clock as clock) as is_over, count(*) as orders from bronze.orders group by 1;
full reason=KEY_NOT_IN_OUTPUT;

# title: two windows in arguments of aggregates
select restaurant_id, count(*) as orders, count_if(ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour) as orders_1h, max(case when ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 24 hours then amount end) as most_24h from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) slices=(ordered_at);

# title: a comparison in one side of an OR
select order_id from bronze.orders where amount > 100 or ordered_at >= (select clock.as_of from livemart.clock as clock) - interval 1 hour;
signed rows keys=(order_id) unique=(order_id) slices=(ordered_at);

# title: a group that the clock lets in
select window(ordered_at, '5 minutes').end as window_end, max(amount) as most from bronze.orders group by 1 having window(ordered_at, '5 minutes').end <= (select clock.as_of from livemart.clock as clock);
region keys=(window_end) unique=(window_end) slices=(ordered_at);

# title: a running value over rows that the clock has passed
select order_id, restaurant_id, ordered_at, sum(case when ordered_at <= (select clock.as_of from livemart.clock as clock) then amount end) over (partition by restaurant_id order by ordered_at range between interval 1 hour preceding and current row) as sales from bronze.orders;
region keys=(restaurant_id) time=ordered_at before=3600s after=0s unique=(order_id) slices=(ordered_at);

# title: a ranking among those that the clock has passed
select order_id, restaurant_id, rank() over (partition by restaurant_id, ordered_at <= (select clock.as_of from livemart.clock as clock) order by amount desc) as place from bronze.orders;
region keys=(restaurant_id) unique=(order_id) slices=(ordered_at);

# title: how far the clock has gone past each row
select order_id, datediff((select clock.as_of from livemart.clock as clock), ordered_at) + 0 as days from bronze.orders;
signed rows keys=(order_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: a comparison that is compared itself
select order_id, (ordered_at <= (select clock.as_of from livemart.clock as clock)) = (amount > 10) as is_odd from bronze.orders;
signed rows keys=(order_id) unique=(order_id) slices=(ordered_at);

# title: a time that only an aggregate knows
select restaurant_id, count(*) as orders, max(ordered_at) <= (select clock.as_of from livemart.clock as clock) - interval 1 day as is_gone from bronze.orders group by 1;
region keys=(restaurant_id) unique=(restaurant_id) slices=(ordered_at);

# title: a time on the side that a join looks up
select orders.order_id, restaurants.restaurant_name, orders.ordered_at <= (select clock.as_of from livemart.clock as clock) as is_over from bronze.restaurants as restaurants left join bronze.orders as orders on orders.restaurant_id = restaurants.restaurant_id;
signed rows lookups=1/1 keys=(restaurant_name) slices=(ordered_at);

# title: a named window is ordered by a comparison with the clock
select order_id, restaurant_id, count(*) over w as n from bronze.orders window w as (partition by restaurant_id order by case when ordered_at > (select as_of from livemart.clock) then 0 else 1 end, order_id);
region keys=(restaurant_id) unique=(order_id) slices=(ordered_at) reason=WINDOW_UNBOUNDED;

# title: a named window is ordered by a value of another table
select order_id, restaurant_id, count(*) over w as n from bronze.orders window w as (partition by restaurant_id order by (select max(dish_name) from bronze.dishes), order_id);
region keys=(restaurant_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED reason=WINDOW_UNBOUNDED stage_1=(full reason=GLOBAL_AGG) last=(select order_id, restaurant_id, count(*) over w as n from bronze.orders as `orders` window w as (partition by restaurant_id order by (select * from stage_1), order_id));

# title: the clock passes times that the query spells out
select o.order_id, p.name from bronze.orders as o cross join (values ('spring', timestamp '2026-03-01')) as p(name, begins_at) where p.begins_at <= (select as_of from livemart.clock);
signed rows keys=(order_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: stored times beside one that is spelled out
select kind, at from (select 'spring' as kind, timestamp '2026-03-01' as at union all select order_id, ordered_at from bronze.orders) where at < (select as_of from livemart.clock);
region keys=(kind, at) reason=SCALAR_SUBQUERY_CHANGED;

# title: the clock named in a query without a table
with p as (select (select as_of from livemart.clock) as now, 7 as days) select restaurant_id, count(*) as n from bronze.orders cross join p where ordered_at > p.now - interval 1 day group by 1;
signed groups keys=(restaurant_id) within[1]=(from __clock__ - interval 1 day) unique=(restaurant_id) slices=(ordered_at);

# title: the clock named in a query of a subquery
with p as (select date((select as_of from livemart.clock)) as today) select restaurant_id, max(amount) as most from bronze.orders where date(ordered_at) >= (select today from p) group by 1;
region keys=(restaurant_id) within[1]=(from (date(__clock__))) unique=(restaurant_id) slices=(ordered_at);

# title: times of the clock that a row without a table names
with p as (select (select as_of from livemart.clock) as now, (select as_of from livemart.clock) - interval 24 hours as since) select restaurant_id, count(*) as orders from bronze.orders as o cross join p where o.ordered_at >= p.since and o.ordered_at < p.now group by 1;
signed groups keys=(restaurant_id) within[2]=(from (__clock__ - interval 24 hours), to __clock__) unique=(restaurant_id) slices=(ordered_at);
