-- Every number that came; what was no number is a dead letter.
select
    line as number,
    if(line < 10, line * 100, line) as value

from {{ source('small', 'numbers') }}
