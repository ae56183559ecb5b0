{# Hours, never days: an interval of days follows the local calendar
   (SPARK-34761). Zero hours is the end of the current window. #}
{% macro window_start(hours) -%}
    {{ as_of() }}{% if hours %} - interval '{{ hours }}' hour{% endif %}
{%- endmacro %}
