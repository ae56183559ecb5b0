{# Everything is quoted and then cast by the caller: a decimal keeps its digits,
   a timestamp its microseconds. #}
{% macro seed_literal(value) -%}
    {%- if value is none -%}
        null
    {%- else -%}
        {%- if value is string -%}
            {%- set text = value -%}
        {%- elif value is boolean -%}
            {%- set text = value | string | lower -%}
        {%- elif value is number -%}
            {#- str(Decimal) may answer 1E+2, which no integer type reads -#}
            {%- set text = '{:f}'.format(value) -%}
        {%- else -%}
            {%- set text = value.isoformat() -%}
        {%- endif -%}
        '{{ text | replace("\\", "\\\\") | replace("'", "\\'") }}'
    {%- endif -%}
{%- endmacro %}
