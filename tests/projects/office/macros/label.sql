{% macro default__label(text) %}concat('office ', {{ text }}){% endmacro %}
{% macro generate_schema_name(custom, node) %}{{ target.schema if custom is none else custom }}{% endmacro %}
{% macro generate_alias_name(custom, node) %}{{ custom or (node.name ~ ('_v' ~ node.version if node.version else '')) }}{% endmacro %}
{% test above(model, column_name, least) %}select * from {{ model }} where {{ column_name }} <= {{ least }}{% endtest %}
{% macro column_names(relation) %}
  {% if execute %}{% for it in adapter.get_columns_in_relation(relation) %}{{ it.name }}{{ ", " if not loop.last }}{% endfor %}{% else %}*{% endif %}
{% endmacro %}
