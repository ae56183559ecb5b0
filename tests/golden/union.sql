# title: branches of rows
select order_id as id from bronze.orders union all select dish_id as id from bronze.dishes;
signed rows keys=(id);

# title: branches told apart by a constant hold different groups
select restaurant_id, 1 as kind, count(*) as n from bronze.orders group by 1, 2 union all select restaurant_id, 2 as kind, count(*) as n from bronze.dishes group by 1, 2;
signed groups keys=(restaurant_id, kind) unique=(restaurant_id, kind);

# title: branches that may hold the same group are recomputed
select restaurant_id, count(*) as n from bronze.orders group by 1 union all select restaurant_id, count(*) as n from bronze.dishes group by 1;
region keys=(restaurant_id);

# title: EXCEPT has no rule yet
select restaurant_id from bronze.orders except select restaurant_id from bronze.dishes;
region keys=(restaurant_id) unique=(restaurant_id);

# title: constant rows are no one's change
select order_id, status from bronze.orders union all select 'none' as order_id, 'none' as status;
region keys=(order_id, status);

# title: constants that are equal once the branches have one type
select '1' as kind, restaurant_id, count(*) as n from bronze.orders group by restaurant_id union all select 1, restaurant_id, count(*) from bronze.dishes group by restaurant_id;
region keys=(kind, restaurant_id);

# title: constants of one kind tell branches apart
select 1 as kind, restaurant_id, count(*) as n from bronze.orders group by restaurant_id union all select 2 as kind, restaurant_id, count(*) as n from bronze.dishes group by restaurant_id;
signed groups keys=(kind, restaurant_id) unique=(kind, restaurant_id);

# title: a constant of every branch does not confine, columns of a dimension do
select kind, restaurant_name, max(amount) as most from (select 'a' || 'b' as kind, r.restaurant_name, o.amount from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id union all select 'a' || 'b' as kind, r.restaurant_name, o.amount from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id where o.status = 'placed') as u group by kind, restaurant_name;
region keys=(kind, restaurant_name) unique=(kind, restaurant_name);

# title: columns of a dimension confine more than the name of a branch
select kind, restaurant_name, max(amount) as most from (select 'all' as kind, r.restaurant_name, o.amount from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id union all select 'placed' as kind, r.restaurant_name, o.amount from bronze.orders as o join bronze.restaurants as r on o.restaurant_id = r.restaurant_id where o.status = 'placed') as u group by kind, restaurant_name;
region keys=(kind, restaurant_name) unique=(kind, restaurant_name);

# title: only the first branch names the columns
select 'status' as kind, status as name, count(*) as n from bronze.orders group by status union all select 'items', items, count(*) from bronze.orders group by items union all select 'status', 'status', 0;
region keys=(kind, name);
