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
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: a scalar subquery with an aggregate
select order_id from bronze.orders where amount > (select avg(amount) from bronze.orders);
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: the clock of a cross join in the output changes every row
select orders.order_id, clock.as_of from bronze.orders as orders cross join livemart.clock as clock;
signed rows keys=(order_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: the clock in HAVING
select orders.restaurant_id, max(orders.ordered_at) as last_at from bronze.orders as orders cross join livemart.clock as clock group by 1 having max(orders.ordered_at) < max(clock.as_of) - interval 1 day;
region keys=(restaurant_id) unique=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED;

# title: the clock in an argument of an aggregate
select orders.restaurant_id, count(*) as orders, sum(case when orders.ordered_at >= clock.as_of - interval 1 hour then 1 else 0 end) as recent from bronze.orders as orders cross join livemart.clock as clock group by 1;
region keys=(restaurant_id) unique=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED;

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
