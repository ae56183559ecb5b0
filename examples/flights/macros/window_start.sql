{# Hours, not days: an interval of days follows the local calendar (SPARK-34761). #}
{% macro window_start(hours) -%}
    {{ as_of() }} - interval '{{ hours }}' hour
{%- endmacro %}
