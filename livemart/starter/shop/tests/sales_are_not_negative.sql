-- A test returns the rows that are wrong: here shops that sold for less than nothing.
select shop_id, sales_amount from {{ ref('shop_last_day') }} where sales_amount < 0
