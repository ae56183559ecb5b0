select member_id, any_value(city) as city, count(*) as changes from {{ source('raw', 'changes') }} group by member_id
