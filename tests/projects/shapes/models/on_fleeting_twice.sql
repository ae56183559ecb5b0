select a.customer_id, count(*) as pair_count from {{ ref('fleeting') }} as a
inner join {{ ref('fleeting') }} as b on a.customer_id = b.customer_id and a.sold_hour = b.sold_hour
group by a.customer_id
