{# Tables that were registered again by their folder are external: dropping one
   leaves its files, and a plain create is then refused by Delta. #}
{% macro spark__create_csv_table(model, agate_table) %}
    {%- set column_types = model['config'].get('column_types', {}) -%}
    {%- set quote_columns = model['config'].get('quote_columns', None) -%}
    {%- set sql -%}
        create or replace table {{ this.render() }} (
            {%- for column_name in agate_table.column_names %}
            {%- set inferred_type = adapter.convert_type(agate_table, loop.index0) %}
            {{ adapter.quote_seed_column(column_name | string, quote_columns) }}
            {{ column_types.get(column_name, inferred_type) }}
            {%- if not loop.last %},{% endif %}
            {%- endfor %}
        )
        {{ file_format_clause() }}
        {{ partition_cols(label="partitioned by") }}
        {{ location_clause() }}
        {{ comment_clause() }}
    {%- endset -%}

    {% call statement('_') -%}
        {{ sql }}
    {%- endcall %}

    {{ return(sql) }}
{% endmacro %}
