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

{# The rules of livemart/project/declared/partition_columns.py: a query with the values that Spark stores as they are, or an error. #}
{% macro livemart_kept_values(code) %}
  {%- set partition_by = config.get('partition_by') or [] -%}
  {%- set partition_by = [partition_by] if partition_by is string else partition_by -%}
  {%- if not partition_by -%}{{ return(code) }}{%- endif -%}
  {%- set names = partition_by | map('trim') | map('replace', '`', '') | map('lower') | list -%}
  {%- set place = 'PARTITION_VALUES_LOST: ' ~ model.original_file_path ~ ': model ' ~ model.name ~ ': partition_by: found ' -%}
  {%- set columns, times = [], [] -%}
  {%- for column in run_query('describe query ' ~ code).rows -%}
    {%- set name = '`' ~ column[0] | replace('`', '``') ~ '`' -%}
    {%- if column[0] | replace('`', '') | lower not in names or column[1] not in ('date', 'timestamp', 'timestamp_ntz', 'binary') -%}
      {%- do columns.append(name) -%}
    {%- elif column[1] == 'binary' -%}
      {%- do exceptions.raise_compiler_error(
        place ~ column[0] ~ ', a binary: Spark would store bytes that are no UTF-8 as others\n'
        ~ '  next: partition by a text, such as hex(...) or base64(...)'
      ) -%}
    {%- else -%}
      {%- set found -%}
        '{{ (place ~ column[0]) | replace('\\', '\\\\') | replace("'", "\\'") }} = ', cast({{ name }} as string), ' ', current_timezone()
      {%- endset -%}
      {%- set sql -%}
        case when abs(year({{ name }})) >= 262142 then raise_error(concat({{ found }},
          ', 262,142 years or more from the year 0: readers except Spark refuse such a table; next: bound the values, as with least(...), or partition by another column'))
        {%- if column[1] == 'timestamp' %}
        when not ({{ name }} >= timestamp'0001-01-01 00:00:00Z' and cast(cast({{ name }} as string) as timestamp) = {{ name }}) then raise_error(concat({{ found }},
          ', before the year 1, or the second of two such hours, as the clock of the session is put back: Spark would store another one; next: partition by',
          ' a day, cast(... as date), or by a timestamp_ntz, or let the session be in UTC (spark.sql.session.timeZone)'))
        {%- endif %}
        else {{ name }} end as {{ name }}
      {%- endset -%}
      {%- do columns.append(sql) -%}
      {%- do times.append(name) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return('select ' ~ columns | join(', ') ~ ' from (\n' ~ code ~ '\n)' if times else code) }}
{% endmacro %}

{# Spark notes beside a column that it holds sessions, and merges those that meet in any group above, even in
   another model. In a table they are pairs of times, as `overwrite` of livemart/spark/large_lane.py stores them. #}
{% macro livemart_plain_sessions(code) %}
  {%- set texts, parents = [code], model.depends_on.nodes | list -%}
  {%- for parent in parents -%}
    {%- set node = graph.nodes.get(parent) -%}
    {%- if node and node.config.materialized in ('view', 'ephemeral') -%}
      {%- do texts.append(node.compiled_code or node.raw_code) -%}
      {%- for below in node.depends_on.nodes if below not in parents -%}
        {%- do parents.append(below) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if 'session_window' not in texts | join(' ') | lower -%}{{ return(code) }}{%- endif -%}
  {%- set columns, sessions = [], [] -%}
  {%- for column in run_query('describe query ' ~ code).rows -%}
    {%- set name = '`' ~ column[0] | replace('`', '``') ~ '`' -%}
    {%- if column[1] in ('struct<start:timestamp,end:timestamp>', 'struct<start:timestamp_ntz,end:timestamp_ntz>') -%}
      {%- do sessions.append(name) -%}
      {%- do columns.append('cast(' ~ name ~ ' as ' ~ column[1] ~ ') as ' ~ name) -%}
    {%- else -%}
      {%- do columns.append(name) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return('select ' ~ columns | join(', ') ~ ' from (\n' ~ code ~ '\n)' if sessions else code) }}
{% endmacro %}

{# dbt-spark drops and creates a table that is not configured as Delta. The drop only takes the table out
   of the catalog, as every table has a location; the data are replaced here. #}
{% macro spark__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language == 'python' -%}
    {{ py_write_table(compiled_code=compiled_code, target_relation=relation) }}
  {%- elif temporary -%}
    {{ create_temporary_view(relation, livemart_kept_values(compiled_code)) }}
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
    {{ livemart_kept_values(livemart_plain_sessions(compiled_code)) }}
  {%- endif -%}
{%- endmacro %}

{# dbt's own statement, over values that Spark stores as they are. MERGE writes the rows that stay in a file
   again, so the table must hold no others: another session may have stored it. #}
{% macro spark__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set stored = 'select * from ' ~ target -%}
  {%- set kept = livemart_kept_values(stored) -%}
  {%- if kept != stored -%}
    {%- set partition_by = config.get('partition_by') -%}
    {%- set partition_by = partition_by if partition_by is string else partition_by | join(', ') -%}
    {%- do run_query('select max(struct(' ~ partition_by ~ ')) from (\n' ~ kept ~ '\n)') -%}
  {%- endif -%}
  {%- set rows = '(\n' ~ livemart_kept_values('select * from ' ~ source) ~ '\n)' -%}
  {{ return(default__snapshot_merge_sql(target, rows, insert_cols)) }}
{%- endmacro %}

{# Every table is Delta, whatever `file_format` says or leaves out: `merge` is a strategy for each of them. #}
{% macro dbt_spark_validate_get_file_format(raw_file_format) %}
  {{ return('delta') }}
{% endmacro %}

{# dbt-spark says `set not null`, which Delta 4.4 refuses for a column that may hold NULL, as every column of a
   `create table as`. A check refuses the same rows. #}
{% macro spark__alter_column_set_constraints(relation, column_dict) %}
  {%- for column_name in column_dict -%}
    {%- for constraint in column_dict[column_name]['constraints'] -%}
      {%- if constraint.type != 'not_null' -%}
        {%- do exceptions.warn('Invalid constraint for column ' ~ column_name ~ '. Only `not_null` is supported.') -%}
      {%- elif not is_incremental() -%}
        {%- set name = column_name | replace('`', '``') -%}
        {%- call statement() -%}
          alter table {{ relation }} add constraint `not_null_{{ name }}` check (`{{ name }}` is not null)
        {%- endcall -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endfor -%}
{% endmacro %}
