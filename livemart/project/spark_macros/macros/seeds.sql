{# Seeds: one replaced table, and values as literals. dbt-spark drops the table, quotes text by hand
   (an apostrophe is a syntax error), and sends each number as a float. #}

{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {{ return(create_csv_table(model, agate_table)) }}
{% endmacro %}

{% macro spark__create_csv_table(model, agate_table) %}
  {%- set sql -%}
    create or replace table {{ this.render() }} (
    {%- for column in agate_table.column_names %}
      {{ adapter.quote_seed_column(column, model['config'].get('quote_columns', none)) }} {{ livemart_seed_type(agate_table, loop.index0) }}
      {%- if not loop.last %},{% endif %}
    {%- endfor %}
    )
    {{ file_format_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
  {%- endset -%}
  {%- call statement('_') -%}{{ sql }}{%- endcall -%}
  {{ return(sql) }}
{% endmacro %}

{% macro spark__load_csv_rows(model, agate_table) %}
  {%- set statements = [] -%}
  {%- for chunk in agate_table.rows | batch(get_batch_size()) -%}
    {%- set sql -%}
      insert into {{ this.render() }} values
      {%- for row in chunk %}
      (
        {%- for value in row -%}
          cast({{ livemart_literal(value) }} as {{ livemart_seed_type(agate_table, loop.index0) }}){{ ', ' if not loop.last }}
        {%- endfor -%}
      ){{ ',' if not loop.last }}
      {%- endfor %}
    {%- endset -%}
    {%- do adapter.add_query(sql, abridge_sql_log=True) -%}
    {%- if loop.first -%}{%- do statements.append(sql) -%}{%- endif -%}
  {%- endfor -%}
  {{ return(statements[0]) }}
{% endmacro %}

{% macro livemart_seed_type(agate_table, index) -%}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {{- overrides.get(agate_table.column_names[index], adapter.convert_type(agate_table, index)) -}}
{%- endmacro %}

{% macro livemart_literal(value) -%}
  {%- if value is none -%}
    null
  {%- else -%}
    '{{ value | string | replace('\\', '\\\\') | replace("'", "\\'") }}'
  {%- endif -%}
{%- endmacro %}
