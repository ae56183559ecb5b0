{# https://github.com/dbt-labs/dbt-spark/issues/572 and the apostrophe of every
   restaurant called Joe's. #}
{% macro spark__load_csv_rows(model, agate_table) %}
    {%- set column_types = model['config'].get('column_types', {}) -%}
    {%- set types = [] -%}
    {%- for column_name in agate_table.column_names -%}
        {%- set inferred_type = adapter.convert_type(agate_table, loop.index0) -%}
        {%- do types.append(column_types.get(column_name, inferred_type)) -%}
    {%- endfor -%}

    {%- set statements = [] -%}
    {%- for chunk in agate_table.rows | batch(get_batch_size()) -%}
        {%- set sql -%}
            insert into {{ this.render() }} values
            {% for row in chunk -%}
                ({%- for value in row -%}
                    cast({{ seed_literal(value) }} as {{ types[loop.index0] }})
                    {%- if not loop.last %}, {% endif -%}
                {%- endfor -%})
                {%- if not loop.last %},
            {% endif -%}
            {%- endfor -%}
        {%- endset -%}
        {%- do adapter.add_query(sql, abridge_sql_log=True) -%}
        {%- do statements.append(sql) -%}
    {%- endfor -%}

    {# The first statement is what dbt shows in its compiled files. #}
    {{ return(statements[0]) }}
{% endmacro %}
