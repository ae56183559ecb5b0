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

# title: a pivot whose columns have no names
select * from (select restaurant_id, status, amount from bronze.orders) pivot (sum(amount), max(amount) for status in ('placed', 'delivered'));
full reason=PARSE_UNSUPPORTED;

# title: the time in a literal
select order_id from bronze.orders where ordered_at >= timestamp 'today';
full reason=EXPRESSION_NOT_DETERMINISTIC;

# title: a function without brackets
select order_id, localtimestamp as read_at from bronze.orders;
full reason=EXPRESSION_NOT_DETERMINISTIC;

# title: a method of Java
select order_id, reflect('java.util.UUID', 'randomUUID') as id from bronze.orders;
full reason=EXPRESSION_NOT_DETERMINISTIC;

# title: a function of a schema, whatever its name
select tools.upper(status) as status from bronze.orders;
full reason=UDF_NOT_DETERMINISTIC;

# title: a program
select transform(order_id) using 'cat' as (id) from bronze.orders;
full reason=UDF_NOT_DETERMINISTIC;

# title: a column that no table has
select order_id, colour from bronze.orders;
full reason=PARSE_UNSUPPORTED;

# title: a star among arguments
select order_id, hash(*) as fingerprint from bronze.orders;
full reason=PARSE_UNSUPPORTED;

# title: a collation
select order_id from bronze.orders where status collate UTF8_LCASE = 'placed';
full reason=PARSE_UNSUPPORTED;

# title: a window time, which Spark takes from a note beside the column
select window_time(hour) as at, sum(n) as n
from (select window(ordered_at, '1 hour') as hour, count(*) as n from bronze.orders group by 1)
group by 1;
full reason=PARSE_UNSUPPORTED;

# title: pipes
from bronze.orders |> where amount > 1 |> select order_id;
full reason=PARSE_UNSUPPORTED;

# title: an older version of a table
select order_id from bronze.orders version as of 3;
full reason=PARSE_UNSUPPORTED;

# title: a comparison with any of many values
select order_id from bronze.orders where amount > any (select quantity_sold from mart.dish_totals);
full reason=PARSE_UNSUPPORTED;
