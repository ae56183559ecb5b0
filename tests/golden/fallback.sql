# title: the wall clock
select order_id from bronze.orders where ordered_at > current_timestamp();
full reason=EXPRESSION_NOT_DETERMINISTIC;

# title: chance
select order_id, rand() as chance from bronze.orders;
full reason=EXPRESSION_NOT_DETERMINISTIC;

# title: a function that Spark does not bring
select my_function(order_id) as x from bronze.orders;
full reason=UDF_NOT_DETERMINISTIC;

# title: a table sample
select order_id from bronze.orders tablesample (10 percent);
full reason=EXPRESSION_NOT_DETERMINISTIC;

# title: text that does not parse
select from where;
full reason=PARSE_UNSUPPORTED;

# title: a pivot
select * from (select restaurant_id, status, amount from bronze.orders) pivot (sum(amount) for status in ('placed', 'delivered'));
full reason=PARSE_UNSUPPORTED;
