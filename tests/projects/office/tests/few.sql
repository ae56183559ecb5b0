{{ config(severity='warn', tags=['office']) }}
select * from {{ ref('totals', v=1) }} where amount > 100
