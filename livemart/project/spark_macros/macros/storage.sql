{# How dbt stores tables in a livemart warehouse: every table is Delta, at warehouse/schema/identifier, and
   is replaced in place, so that its history goes on. A project's own macros of the same name come
   before these, dbt-spark's after them. #}

{% macro livemart_location(relation) -%}
  {%- set folder = [env_var('LIVEMART_WAREHOUSE'), relation.schema | lower] -%}
  {%- if relation.identifier -%}{%- do folder.append(relation.identifier | lower) -%}{%- endif -%}
  location '{{ folder | join('/') | replace('\\', '\\\\') | replace("'", "\\'") }}'
{%- endmacro %}

{% macro spark__location_clause() %}
  {{ livemart_location(this) }}
{%- endmacro %}

{% macro spark__file_format_clause() %}
  using delta
{%- endmacro %}

{% macro spark__create_schema(relation) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ relation }} {{ livemart_location(relation.without_identifier()) }}
  {%- endcall -%}
{%- endmacro %}

{# dbt-spark drops and creates a table that is not configured as Delta. The drop only takes the table out
   of the catalog, as every table has a location; the data are replaced here. #}
{% macro spark__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language == 'python' -%}
    {{ py_write_table(compiled_code=compiled_code, target_relation=relation) }}
  {%- elif temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    create or replace table {{ relation }}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {%- set compiled_code = get_select_subquery(compiled_code) -%}
    {%- endif %}
    {{ file_format_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ livemart_location(relation) }}
    {{ comment_clause() }}
    as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}
