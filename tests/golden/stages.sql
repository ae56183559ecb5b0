# title: the greatest totals are read from a stage of all totals
select restaurant_id, sum(amount) as spent, count(*) as orders from bronze.orders group by restaurant_id order by spent desc nulls last, 1 limit 3;
staged unique=(restaurant_id) stage=(signed groups keys=(restaurant_id) unique=(restaurant_id)) last=(select * from the_stage order by spent desc nulls last, 1 limit 3);

# title: what the order alone reads is a hidden column of the stage
select restaurant_id, count(*) as orders from bronze.orders as o group by restaurant_id order by max(amount) desc, o.restaurant_id limit 3 offset 2;
staged unique=(restaurant_id) stage=(region keys=(restaurant_id, __livemart_order_2) unique=(restaurant_id)) last=(select * except (`__livemart_order_1`, `__livemart_order_2`) from the_stage order by `__livemart_order_1` desc, `__livemart_order_2` limit 3 offset 2);

# title: rows of a join
select o.order_id, r.restaurant_name from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id order by o.amount desc, o.order_id limit 10;
staged unique=(order_id) stage=(signed rows lookups=1/1 keys=(order_id) unique=(order_id)) last=(select * except (`__livemart_order_1`, `__livemart_order_2`) from the_stage order by `__livemart_order_1` desc, `__livemart_order_2` limit 10);

# title: the first groups of a union
select restaurant_id as id, count(*) as n from bronze.orders group by 1 union all select dish_id, count(*) from bronze.dishes group by 1 order by n desc, id limit 10;
staged stage=(region keys=(id)) last=(select * from the_stage order by n desc, id limit 10);

# title: ranks before the first rows
select * from (select dish_id, restaurant_id, rank() over (partition by restaurant_id order by quantity_sold desc) as place from mart.dish_totals) where place < 4 order by place, dish_id, restaurant_id limit 20;
staged unique=(dish_id, restaurant_id) stage=(region keys=(restaurant_id) unique=(dish_id, restaurant_id)) last=(select * from the_stage order by place, dish_id, restaurant_id limit 20);

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
