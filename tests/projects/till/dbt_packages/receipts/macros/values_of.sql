{% macro values_of(relation, column) %}
  {% set asked = run_query('select distinct ' ~ column ~ ' from ' ~ relation ~ ' order by 1') %}
  {{ return(asked.columns[0].values() if execute else []) }}
{% endmacro %}
