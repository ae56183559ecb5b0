{# Seeds: the rows are literals in the statement that replaces the table. dbt-spark drops the table, quotes
   text by hand (an apostrophe is a syntax error), and sends each number as a float. #}

{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {{ return(create_csv_table(model, agate_table)) }}
{% endmacro %}

{# Without rows there is nothing to load: then the empty table is made here. #}
{% macro spark__create_csv_table(model, agate_table) %}
  {%- if agate_table.rows | length > 0 -%}
    {{ return('') }}
  {%- endif -%}
  {%- set sql -%}
    {{ livemart_replace_seed() }} as
    select {{ livemart_seed_columns(agate_table, literals=true) }} where false
  {%- endset -%}
  {%- call statement('_') -%}{{ sql }}{%- endcall -%}
  {{ return(sql) }}
{% endmacro %}

{% macro spark__load_csv_rows(model, agate_table) %}
  {%- set statements = [] -%}
  {%- for chunk in agate_table.rows | batch(get_batch_size()) -%}
    {%- set sql -%}
      {{ livemart_replace_seed() ~ ' as' if loop.first else 'insert into ' ~ this.render() }}
      {% set rows -%}
      select {{ livemart_seed_columns(agate_table) }}
      from values
      {%- for row in chunk %}
        ({% for value in row %}{{ livemart_literal(value) }}{{ ', ' if not loop.last }}{% endfor %})
        {{- ',' if not loop.last }}
      {%- endfor %}
      as seed ({% for name in agate_table.column_names %}c{{ loop.index0 }}{{ ', ' if not loop.last }}{% endfor %})
      {%- endset -%}
      {{ livemart_kept_values(rows) }}
    {%- endset -%}
    {%- do adapter.add_query(sql, abridge_sql_log=True) -%}
    {%- if loop.first -%}{%- do statements.append(sql) -%}{%- endif -%}
  {%- endfor -%}
  {{ return(statements[0]) }}
{% endmacro %}

{% macro livemart_replace_seed() -%}
  create or replace table {{ this.render() }}
  {{ file_format_clause() }}
  {{ tblproperties_clause() }}
  {{ partition_cols(label="partitioned by") }}
  {{ location_clause() }}
  {{ comment_clause() }}
{%- endmacro %}

{% macro livemart_seed_columns(agate_table, literals=false) -%}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set is_quoted = model['config'].get('quote_columns', none) -%}
  {%- for name in agate_table.column_names -%}
    cast({{ 'null' if literals else 'c' ~ loop.index0 }} as {{ types.get(name, adapter.convert_type(agate_table, loop.index0)) }})
    {{- ' as ' ~ adapter.quote_seed_column(name, is_quoted) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}

{% macro livemart_literal(value) -%}
  {%- if value is none -%}
    null
  {%- else -%}
    {#- A decimal's own text may be 1E+2, which no integer type reads. -#}
    {%- set text = '{:f}'.format(value) if value is number and value is not boolean and value is not integer else value | string -%}
    '{{ text | replace('\\', '\\\\') | replace("'", "\\'") }}'
  {%- endif -%}
{%- endmacro %}
