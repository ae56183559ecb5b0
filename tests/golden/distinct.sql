# title: distinct is confined by all its columns
select distinct restaurant_id, status from bronze.orders;
region keys=(restaurant_id, status) unique=(restaurant_id, status);

# title: distinct over a union
select restaurant_id from bronze.orders union select restaurant_id from bronze.dishes;
region keys=(restaurant_id) unique=(restaurant_id);
