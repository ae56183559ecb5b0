{% set rel = adapter.get_relation(database=ref('totals').database, schema=ref('totals').schema, identifier=ref('totals').identifier) %}
select {{ column_names(ref('totals')) }}, {{ 'true' if rel else 'false' }} as found from {{ ref('totals') }}
