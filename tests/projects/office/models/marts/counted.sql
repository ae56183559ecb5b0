{% set tagged = [] %}
{% if execute %}{% for node in graph.nodes.values() if node.resource_type == 'model' and 'office' in node.tags %}{% do tagged.append(node.name) %}{% endfor %}{% endif %}
select {{ tagged | length }} as models, count(*) as rows from {{ ref('totals') }}
