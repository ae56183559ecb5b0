select a.desk_id, a.amount, b.n, c.n as newest from {{ ref('totals', v=1) }} as a join {{ ref('totals', version=2) }} as b using (desk_id) join {{ ref('totals') }} as c using (desk_id)
