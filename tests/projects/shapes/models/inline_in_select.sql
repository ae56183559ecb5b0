with lines as (select sale_id, shop_id, inline(lines) as (product, ordered) from {{ source('raw', 'sales') }})
select shop_id, product, sum(ordered) as ordered, count(*) as line_count from lines group by shop_id, product
