# title: the greatest totals are read from a stage of all totals
select restaurant_id, sum(amount) as spent, count(*) as orders from bronze.orders group by restaurant_id order by spent desc nulls last, 1 limit 3;
staged unique=(restaurant_id) stage_1=(signed groups keys=(restaurant_id) unique=(restaurant_id)) last=(select * from stage_1 order by spent desc nulls last, 1 limit 3);

# title: what the order alone reads is a hidden column of the stage
select restaurant_id, count(*) as orders from bronze.orders as o group by restaurant_id order by max(amount) desc, o.restaurant_id limit 3 offset 2;
staged unique=(restaurant_id) stage_1=(region keys=(restaurant_id, __livemart_order_2) unique=(restaurant_id)) last=(select * except (`__livemart_order_1`, `__livemart_order_2`) from stage_1 order by `__livemart_order_1` desc, `__livemart_order_2` limit 3 offset 2);

# title: rows of a join
select o.order_id, r.restaurant_name from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id order by o.amount desc, o.order_id limit 10;
staged unique=(order_id) stage_1=(signed rows lookups=1/1 keys=(order_id) unique=(order_id)) last=(select * except (`__livemart_order_1`, `__livemart_order_2`) from stage_1 order by `__livemart_order_1` desc, `__livemart_order_2` limit 10);

# title: the first groups of a union
select restaurant_id as id, count(*) as n from bronze.orders group by 1 union all select dish_id, count(*) from bronze.dishes group by 1 order by n desc, id limit 10;
staged stage_1=(region keys=(id)) last=(select * from stage_1 order by n desc, id limit 10);

# title: ranks before the first rows
select * from (select dish_id, restaurant_id, rank() over (partition by restaurant_id order by quantity_sold desc) as place from mart.dish_totals) where place < 4 order by place, dish_id, restaurant_id limit 20;
staged unique=(dish_id, restaurant_id) stage_1=(region keys=(restaurant_id) unique=(dish_id, restaurant_id)) last=(select * from stage_1 order by place, dish_id, restaurant_id limit 20);

# title: a stage of one table's rows would be a copy of them
select order_id, amount from bronze.orders where status = 'placed' order by amount desc, order_id limit 5;
full reason=GLOBAL_LIMIT;

# title: distinct rows by a column that they do not have
select distinct restaurant_id from bronze.orders order by amount limit 5;
full reason=GLOBAL_LIMIT;

# title: an order by a column and an output of the same expression
select restaurant_id, sum(amount) as amount, count(*) as n from bronze.orders group by restaurant_id order by sum(amount) desc limit 3;
full reason=GLOBAL_LIMIT;

# title: another LIMIT below
select restaurant_id, count(*) as n from (select * from bronze.orders order by order_id limit 100) group by restaurant_id order by n limit 3;
full reason=GLOBAL_LIMIT;

# title: a total has no strategy without its LIMIT either
select count(*) as n, max(amount) as most from bronze.orders order by n limit 1;
full reason=GLOBAL_LIMIT reason=GLOBAL_AGG;

# title: totals are added up beside a hidden count of rows
select sum(amount) as spent from bronze.orders where status = 'placed';
signed rows keys=(spent) stage_1=(signed groups) last=(select __livemart_total_1 as spent from stage_1);

# title: a total of all rows that counts them is added up as it is
select count(*) as orders, sum(amount) as spent from bronze.orders;
signed groups;

# title: what is computed of totals is computed in the last step
select 100.0 * sum(case when status = 'placed' then amount else 0 end) / sum(amount) as share, count(amount) as paid from bronze.orders;
signed rows keys=(share, paid) stage_1=(signed groups) last=(select 100.0 * __livemart_total_1 / __livemart_total_2 as share, __livemart_total_3 as paid from stage_1);

# title: different values that are counted without groups
select count(*) as orders, count(distinct customer_id) as customers from bronze.orders where status = 'placed';
signed rows keys=(orders) reason=SCALAR_SUBQUERY_CHANGED stage_1=(signed groups) stage_2=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_3=(signed groups) last=(select __livemart_total_1 as orders, (select __livemart_total_1 from stage_3) as customers from stage_1);

# title: different values of two columns, and no other total
select count(distinct customer_id) as customers, count(distinct status) / 2 as states from bronze.orders;
signed rows keys=(customers) reason=SCALAR_SUBQUERY_CHANGED stage_1=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_2=(signed groups) stage_3=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_4=(signed groups) last=(select __livemart_total_1 as customers, (select __livemart_total_1 from stage_4) / 2 as states from stage_2);

# title: different values of a condition, in branches of a union
select 'seen' as step, count(distinct customer_id) as customers from bronze.orders union all select 'paid', count(distinct customer_id) filter (where amount > 0) from bronze.orders;
signed rows keys=(step, customers) stage_1=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_2=(signed groups) stage_3=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_4=(signed groups) last=(select 'seen' as step, __livemart_total_1 as customers from stage_4 union all select 'paid', __livemart_total_1 from stage_2);

# title: more counts of different values than have room for a total each
select count(distinct amount) as amounts, count(distinct restaurant_id) as restaurants, count(distinct customer_id) as customers, count(distinct status) as states, count(distinct date(ordered_at)) as days from bronze.orders;
staged stage_1=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_2=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_3=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_4=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_5=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_6=(signed groups) stage_7=(signed groups) stage_8=(signed groups) last=(select __livemart_total_1 as amounts, (select count(__livemart_counted) from stage_5) as restaurants, (select count(__livemart_counted) from stage_4) as customers, (select __livemart_total_1 from stage_8) as states, (select __livemart_total_1 from stage_7) as days from stage_6);

# title: different values of one column beside a maximum
select count(distinct customer_id) as customers, max(amount) as most from bronze.orders;
full reason=GLOBAL_AGG;

# title: different values of a key, of which a stage would be a copy of the table
select count(*) as orders, count(distinct customer_id) as customers, count(distinct case when status = 'paid' then upper(order_id) end) as paid from bronze.orders;
full reason=GLOBAL_AGG;

# title: different values where a key is only compared
select count(distinct case when order_id > 'm' then customer_id end) as customers from bronze.orders;
signed rows keys=(customers) stage_1=(signed groups keys=(__livemart_counted) unique=(__livemart_counted)) stage_2=(signed groups) last=(select __livemart_total_1 as customers from stage_2);

# title: different values of one of two branches alone
select 'customers' as kpi, count(distinct customer_id) as n from bronze.orders union all select 'orders', count(distinct order_id) from bronze.orders;
full reason=GLOBAL_AGG;

# title: different values of a comparison with a joined clock
select count(distinct case when o.ordered_at > c.as_of - interval 1 day then o.customer_id end) as customers from bronze.orders as o cross join livemart.clock as c;
staged stage_1=(signed rows keys=(__livemart_column_2, __livemart_column_1) reason=SCALAR_SUBQUERY_CHANGED) last=(select count(distinct case when __livemart_column_2 > __livemart_column_3 - interval 1 day then __livemart_column_1 end) as customers from stage_1);

# title: different values over a join are counted of the joined rows
select count(*) as orders, count(distinct o.customer_id) as customers from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id;
staged stage_1=(signed rows lookups=1/1 keys=(__livemart_column_1)) last=(select count(*) as orders, count(distinct __livemart_column_1) as customers from stage_1);

# title: totals that cannot be added up are computed of the joined rows
select count(distinct r.currency_code) as currencies, max(o.amount) as most from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id where status = 'placed';
staged stage_1=(signed rows lookups=1/1 keys=(__livemart_column_2)) last=(select count(distinct __livemart_column_1) as currencies, max(__livemart_column_2) as most from stage_1);

# title: rows of one table would be a copy of it
select max(amount) as most from bronze.orders where status = 'placed';
full reason=GLOBAL_AGG;

# title: averages of grouping sets of joined rows
select r.currency_code, o.status, avg(o.amount) as spent, grouping(o.status) as g from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id group by rollup (r.currency_code, o.status);
staged stage_1=(signed rows lookups=1/1 keys=(__livemart_column_2, __livemart_column_3)) last=(select __livemart_column_1 as currency_code, __livemart_column_2 as status, avg(__livemart_column_3) as spent, grouping(__livemart_column_2) as g from stage_1 group by rollup (__livemart_column_1, __livemart_column_2));

# title: groups of grouping sets that are kept by their totals, and ranked
select status, date_trunc('month', ordered_at) as started, sum(amount) as spent, rank() over (partition by grouping(status) order by sum(amount) desc) as place, grouping(status) as g from bronze.orders group by rollup (status, started) having spent > 100;
region keys=(g) stage_1=(signed groups unique=(__livemart_key_1, __livemart_key_2, __livemart_set_5)) last=(select __livemart_key_1 as status, __livemart_key_2 as started, __livemart_total_3 as spent, rank() over (partition by __livemart_total_4 order by __livemart_total_3 desc) as place, __livemart_total_4 as g from stage_1 where __livemart_total_3 > 100);

# title: grouping sets of groups
select status, customer_id, sum(orders) as orders from (select customer_id, status, count(*) as orders from bronze.orders group by 1, 2) as q group by grouping sets ((status, customer_id), ());
signed rows keys=(status, customer_id, orders) stage_1=(signed groups keys=(__livemart_column_1, __livemart_column_2) unique=(__livemart_column_1, __livemart_column_2)) stage_2=(signed groups unique=(__livemart_key_4, __livemart_key_5, __livemart_set_7)) last=(select __livemart_key_4 as status, __livemart_key_5 as customer_id, __livemart_total_6 as orders from stage_2);

# title: grouping sets of joined rows
select r.currency_code, o.status, sum(o.amount) as spent, grouping(o.status) as g from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id group by rollup (r.currency_code, o.status);
signed rows keys=(currency_code, status, spent, g) stage_1=(signed groups lookups=1/1 unique=(__livemart_key_1, __livemart_key_2, __livemart_set_5)) last=(select __livemart_key_1 as currency_code, __livemart_key_2 as status, __livemart_total_3 as spent, __livemart_total_4 as g from stage_1);

# title: counts of counts
select orders, count(*) as customers from (select customer_id, count(*) as orders from bronze.orders group by 1) as c group by orders;
signed groups keys=(orders) unique=(orders) stage_1=(signed groups keys=(customer_id) unique=(customer_id)) last=(select orders, count(*) as customers from (select * from stage_1) as c group by orders);

# title: a count of what is left of rows in brackets
select count(*) as n from ((select distinct restaurant_id, dish_id from bronze.dishes) except (select restaurant_id, dish_id from mart.dish_totals)) as d;
signed groups stage_1=(region keys=(restaurant_id, dish_id) unique=(restaurant_id, dish_id)) last=(select count(*) as n from (select * from stage_1) as d);

# title: ranks over all groups
with c as (select restaurant_id, sum(amount) as spent from bronze.orders group by 1) select restaurant_id, rank() over (order by spent desc) as place from c;
staged stage_1=(signed groups keys=(restaurant_id) unique=(restaurant_id)) last=(with c as (select * from (select * except (`__livemart_rows`) from stage_1)) select restaurant_id, rank() over (order by spent desc) as place from c);

# title: a value of all groups, and the groups above it
with c as (select restaurant_id, sum(amount) as spent from bronze.orders group by 1) select r.restaurant_name, c.spent from bronze.restaurants as r join c on r.restaurant_id = c.restaurant_id where c.spent = (select max(spent) from c);
region keys=(restaurant_name) reason=SCALAR_SUBQUERY_CHANGED stage_1=(signed groups keys=(restaurant_id) unique=(restaurant_id)) stage_2=(staged) last=(with c as (select restaurant_id, sum(amount) as spent from bronze.orders as `orders` group by 1) select r.restaurant_name, c.spent from bronze.restaurants as r join c on r.restaurant_id = c.restaurant_id where c.spent = (select * from stage_2));

# title: a value found by its key, and one that a star selects
with m as (select max(amount) as most from bronze.orders) select order_id from bronze.orders where restaurant_id = (select restaurant_id from bronze.restaurants where restaurant_name = 'A') and amount < (select * from m);
signed rows keys=(order_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED reason=SCALAR_SUBQUERY_CHANGED stage_1=(full reason=GLOBAL_AGG) stage_2=(signed rows keys=(restaurant_id) unique=(restaurant_id)) last=(select order_id from bronze.orders as `orders` where restaurant_id = (select * from stage_2) and amount < (select * from stage_1));

# title: a value of one group is found by its key
select order_id from bronze.orders where amount > (select max(amount) from bronze.orders where restaurant_id = 'r1' group by restaurant_id);
signed rows keys=(order_id) unique=(order_id) reason=SCALAR_SUBQUERY_CHANGED stage_1=(region keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select order_id from bronze.orders as `orders` where amount > (select * except (`__livemart_key_1`) from stage_1));

# title: a value that is computed again, among groups that are not
select restaurant_id, count(*) as n from bronze.orders where amount > (select avg(amount) from bronze.orders) group by 1 order by n desc, 1 limit 3;
staged unique=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED stage_1=(full reason=GLOBAL_AGG) stage_2=(signed groups keys=(restaurant_id) unique=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED) last=(select * from stage_2 order by n desc, 1 limit 3);

# title: a value that is found gains nothing beside a step that is recomputed
select max(amount) as most from bronze.orders where restaurant_id = (select restaurant_id from bronze.restaurants where restaurant_name = 'A');
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: the first row of a total
select sum(amount) as spent from bronze.orders limit 1;
staged stage_1=(signed groups) stage_2=(signed rows keys=(spent)) last=(select * from stage_2 limit 1);

# title: a value that is computed again, and rows that follow it
select restaurant_id, count(*) as n from bronze.orders where amount > (select avg(amount) from bronze.orders) group by 1;
signed groups keys=(restaurant_id) unique=(restaurant_id) reason=SCALAR_SUBQUERY_CHANGED stage_1=(full reason=GLOBAL_AGG) last=(select restaurant_id, count(*) as n from bronze.orders as `orders` where amount > (select * from stage_1) group by 1);

# title: the first groups, and what is joined with them
select o.order_id, t.n from bronze.orders as o join (select restaurant_id, count(*) as n from bronze.orders group by 1 order by n desc, 1 limit 10) as t on o.restaurant_id = t.restaurant_id;
signed rows lookups=1/1 keys=(order_id) unique=(order_id) stage_1=(signed groups keys=(restaurant_id) unique=(restaurant_id)) stage_2=(staged unique=(restaurant_id)) last=(select o.order_id, t.n from bronze.orders as o join (select * from stage_2) as t on o.restaurant_id = t.restaurant_id);

# title: an expression table of many readers
with c as (select customer_id, restaurant_id, count(*) as n from bronze.orders group by 1, 2) select a.customer_id, a.n from c as a where a.n > (select avg(b.n) from c as b);
region keys=(customer_id) reason=SCALAR_SUBQUERY_CHANGED stage_1=(signed groups keys=(customer_id, restaurant_id) unique=(customer_id, restaurant_id)) stage_2=(staged) last=(with c as (select customer_id, restaurant_id, count(*) as n from bronze.orders as `orders` group by 1, 2) select a.customer_id, a.n from c as a where a.n > (select * from stage_2));

# title: rows that both sides have
select restaurant_id, customer_id from bronze.orders intersect select restaurant_id, dish_id from bronze.dishes;
region keys=(restaurant_id, customer_id) unique=(restaurant_id, customer_id);

# title: rows that one side alone has, as often as it has more
select restaurant_id, customer_id from bronze.orders except all select restaurant_id, dish_id from bronze.dishes;
region keys=(restaurant_id, customer_id);

# title: a subquery that names a row around it
select restaurant_id, (select max(d.dish_name) from bronze.dishes as d where d.restaurant_id > r.restaurant_id) as later from bronze.restaurants as r;
full reason=SUBQUERY_NOT_INCREMENTALIZABLE;

# title: ranked groups of all that is selected without a total
select date_trunc('month', ordered_at) as month, sum(amount) as spent, lag(sum(amount)) over (order by date_trunc('month', ordered_at)) as before from bronze.orders group by all;
staged stage_1=(signed groups keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select __livemart_key_1 as month, __livemart_total_2 as spent, lag(__livemart_total_2) over (order by __livemart_key_1) as before from (select * except (`__livemart_rows`) from stage_1));

# title: ranked groups in the order of a total
select status, count(*) as orders, rank() over (order by count(*) desc) as place from bronze.orders group by status order by count(*) desc;
staged stage_1=(signed groups keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select __livemart_key_1 as status, __livemart_total_2 as orders, rank() over (order by __livemart_total_2 desc) as place from stage_1 order by `orders` desc);

# title: sums of sets by the places of outputs
select status, date_trunc('month', ordered_at) as month, sum(amount) as spent from bronze.orders group by 1, 2 with rollup;
signed rows keys=(status, month, spent) stage_1=(signed groups unique=(__livemart_key_1, __livemart_key_2, __livemart_set_4)) last=(select __livemart_key_1 as status, __livemart_key_2 as month, __livemart_total_3 as spent from stage_1);

# title: sets that are kept by what is computed of their totals
select status, sum(amount) / 2 as half, -count(*) as n from bronze.orders group by rollup (status) having half > 3 or n * 2 < -9;
signed rows keys=(status, half, n) stage_1=(signed groups unique=(__livemart_key_1, __livemart_set_4)) last=(select __livemart_key_1 as status, __livemart_total_2 / 2 as half, -__livemart_total_3 as n from stage_1 where (__livemart_total_2 / 2) > 3 or (-__livemart_total_3) * 2 < -9);

# title: sets that are kept by an output of an output
select status, sum(amount) / 2 as half, half + 1 as more from bronze.orders group by rollup (status) having more > 3;
full reason=GLOBAL_AGG;

# title: sums of sets under the names of their columns
select coalesce(status, 'all') as status, sum(amount) as amount from bronze.orders group by rollup (status);
signed rows keys=(status, amount) stage_1=(signed groups unique=(__livemart_key_1, __livemart_set_3)) last=(select coalesce(__livemart_key_1, 'all') as status, __livemart_total_2 as amount from stage_1);

# title: a total under the name of its column
select sum(amount) as amount from bronze.orders;
signed rows keys=(amount) stage_1=(signed groups) last=(select __livemart_total_1 as amount from stage_1);

# title: a name among the keys that an output has, too
select upper(r.currency_code) as currency_code, count(distinct o.customer_id) as n from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id group by rollup (r.currency_code);
staged stage_1=(signed rows lookups=1/1 keys=(__livemart_column_2)) last=(select upper(__livemart_column_1) as currency_code, count(distinct __livemart_column_2) as n from stage_1 group by rollup (__livemart_column_1));

# title: a name that an output has, too
select upper(r.currency_code) as currency_code, count(distinct o.customer_id) as n from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id group by rollup (r.currency_code) having currency_code > 'A';
full reason=GLOBAL_AGG;

# title: a column without a name that a table can have
select max(c.n) as most from (select restaurant_id, count(*) as `n n` from bronze.orders group by 1) as c (id, n);
full reason=GLOBAL_AGG;

# title: any groups, as no order says which
select restaurant_id, count(*) as orders from bronze.orders group by restaurant_id limit 3;
staged unique=(restaurant_id) stage_1=(signed groups keys=(restaurant_id) unique=(restaurant_id)) last=(select * from stage_1 limit 3);

# title: windows of two partitions, one of which is not selected
select order_id, sum(amount) over (partition by restaurant_id) as spent, max(amount) over (partition by customer_id) as most from bronze.orders;
signed rows keys=(order_id) unique=(order_id) stage_1=(region keys=(__livemart_key_5) unique=(__livemart_column_2)) stage_2=(region keys=(__livemart_key_5) unique=(order_id)) last=(select * except (`__livemart_key_5`) from stage_2);

# title: all columns beside windows of two partitions
select o.*, sum(amount) over (partition by restaurant_id) as spent, rank() over (partition by date(ordered_at), customer_id order by amount) as place from bronze.orders as o qualify place < 3;
region keys=(customer_id) unique=(order_id) stage_1=(region keys=(restaurant_id) unique=(order_id)) last=(select o.* except (__livemart_window_1), __livemart_window_1 as spent, rank() over (partition by date(ordered_at), customer_id order by amount) as place from stage_1 as `o` qualify place < 3);

# title: ranks of groups, in the same SELECT
select restaurant_id, sum(amount) as amount, sum(amount) / sum(sum(amount)) over () as share, rank() over (order by sum(amount) desc) as place from bronze.orders group by restaurant_id;
staged stage_1=(signed groups keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select __livemart_key_1 as restaurant_id, __livemart_total_2 as amount, __livemart_total_2 / sum(__livemart_total_2) over () as share, rank() over (order by __livemart_total_2 desc) as place from (select * except (`__livemart_rows`) from stage_1));

# title: groups whose condition names an output, and windows over them
select r.currency_code as code, date(o.ordered_at) as day, count(*) as orders, lag(count(*)) over (partition by r.currency_code order by date(o.ordered_at)) as before, rank() over w as place from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id group by 1, date(o.ordered_at) having orders > 1 window w as (partition by date(o.ordered_at) order by count(*) desc);
region keys=(day) unique=(code, day) stage_1=(region keys=(__livemart_key_2) unique=(__livemart_key_1, __livemart_key_2)) stage_2=(region keys=(__livemart_column_5) unique=(__livemart_column_5, __livemart_column_6)) last=(select __livemart_column_5 as code, __livemart_column_6 as day, __livemart_column_7 as orders, __livemart_window_4 as before, rank() over w as place from stage_2 window w as (partition by __livemart_column_6 order by __livemart_column_7 desc));

# title: the key of a window is not selected
select order_id, rank() over (partition by customer_id, date(ordered_at) order by amount) as place from bronze.orders;
signed rows keys=(order_id) unique=(order_id) stage_1=(region keys=(__livemart_key_1, __livemart_key_2) unique=(order_id)) last=(select * except (`__livemart_key_1`, `__livemart_key_2`) from stage_1);

# title: the keys of groups below are not selected
with days as (select max(amount) as most from bronze.orders group by restaurant_id, date(ordered_at)) select most, most > 10 as is_high from days;
signed rows keys=(most, is_high) stage_1=(region keys=(__livemart_key_1, __livemart_key_2) unique=(__livemart_key_1, __livemart_key_2)) last=(with days as (select * except (`__livemart_key_1`, `__livemart_key_2`) from stage_1) select most, most > 10 as is_high from days);

# title: a window over all rows beside another one: its stage would have all rows
select order_id, sum(amount) over (partition by restaurant_id) as spent, sum(amount) over () as all_spent from bronze.orders;
full reason=WINDOW_WITHOUT_PARTITION_BY;

# title: windows of two partitions whose orders may tie
select order_id, row_number() over (partition by restaurant_id order by ordered_at) as n, row_number() over (partition by customer_id order by ordered_at) as m from bronze.orders;
signed rows keys=(order_id) unique=(order_id) reason=NONDETERMINISTIC_ORDER reason=NONDETERMINISTIC_ORDER stage_1=(region keys=(__livemart_key_5) unique=(__livemart_column_2) reason=NONDETERMINISTIC_ORDER) stage_2=(region keys=(__livemart_key_5) unique=(order_id) reason=NONDETERMINISTIC_ORDER) last=(select * except (`__livemart_key_5`) from stage_2);

# title: a name within an aggregate that an output has, too
select restaurant_id, sum(amount) as amount, rank() over (order by sum(amount)) as place from bronze.orders group by restaurant_id having sum(amount) > 3;
staged stage_1=(region keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select __livemart_key_1 as restaurant_id, __livemart_total_2 as amount, rank() over (order by __livemart_total_2) as place from stage_1);

# title: a name of an order that an output and a column have
select restaurant_id, sum(amount) as amount, rank() over (order by sum(amount)) as place from bronze.orders group by restaurant_id order by amount;
full reason=WINDOW_WITHOUT_PARTITION_BY;

# title: distinct rows without the key of their window
select distinct rank() over (partition by customer_id order by amount) as place from bronze.orders;
full reason=KEY_NOT_IN_OUTPUT;

# title: totals in the branches of a union
select 'orders' as kpi, count(*) as value from bronze.orders union all select 'spent', sum(amount) from bronze.orders where status = 'placed' order by kpi;
signed rows keys=(kpi, value) stage_1=(signed groups) stage_2=(signed groups) last=(select 'orders' as kpi, __livemart_total_1 as value from stage_2 union all select 'spent', __livemart_total_1 from stage_1 order by kpi);

# title: windows of two partitions in the branches of a union
select order_id, rank() over (partition by restaurant_id order by amount) as place from bronze.orders union all select order_id, rank() over (partition by status order by _landed_at) as place from bronze.order_events;
signed rows keys=(order_id, place) stage_1=(region keys=(__livemart_key_1)) stage_2=(region keys=(__livemart_key_1) unique=(order_id)) last=(select * except (`__livemart_key_1`) from stage_2 union all select * except (`__livemart_key_1`) from stage_1);

# title: branches of a union with its own names
with a as (select amount from bronze.orders) select * from (with a as (select quantity_sold as amount from mart.dish_totals) select 'x' as k, sum(amount) as m from a union all select 'y', max(amount) from a) where m in (select amount from a);
full reason=GLOBAL_AGG;

# title: a union behind names of its own, in a query with names
with o as (select restaurant_id, amount from bronze.orders where status = 'placed'), f as (with t as (select restaurant_id, sum(amount) as spent from o group by 1) select 'all' as which, sum(spent) as spent from t union all select 'most', max(spent) from t) select which, spent from f where spent > 0;
signed rows keys=(which, spent) stage_1=(signed groups keys=(restaurant_id) unique=(restaurant_id)) stage_2=(signed groups) stage_3=(staged) last=(with f as (select * from stage_3) select which, spent from f where spent > 0);

# title: distinct totals of groups whose key is not selected
select distinct sum(amount) as spent, count(*) as orders from bronze.orders group by restaurant_id;
region keys=(spent, orders) unique=(spent, orders) stage_1=(signed groups keys=(__livemart_key_1) unique=(__livemart_key_1)) last=(select distinct * except (`__livemart_key_1`) from stage_1);
