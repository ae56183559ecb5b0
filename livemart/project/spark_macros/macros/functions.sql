{# dbt's own statement puts the body between dollar signs, and says IMMUTABLE or VOLATILE: Spark 4.2 reads neither. #}
{% macro spark__scalar_function_sql(target_relation) %}
  {%- set arguments = [] -%}
  {%- for argument in model.arguments -%}
    {%- set default_value = argument.get('default_value') -%}
    {%- do arguments.append(argument.name ~ ' ' ~ argument.data_type ~ (' default ' ~ default_value if default_value is not none else '')) -%}
  {%- endfor -%}
  {%- set volatility = model.config.get('volatility') -%}
  create or replace function {{ target_relation.render() }}({{ arguments | join(', ') }})
  returns {{ model.returns.data_type }}
  {% if volatility == 'deterministic' %}deterministic{% elif volatility == 'non-deterministic' %}not deterministic{% endif %}
  return {{ model.compiled_code.strip().rstrip(';') }}
{% endmacro %}
