select * from {{ ref('totals') }}
