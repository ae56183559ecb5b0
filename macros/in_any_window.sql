{# Whether a time is between the start of the earliest window and as_of. #}
{% macro in_any_window(column) -%}
    {%- set longest = var('window_hours') | max -%}
    {{ column }} >= {{ window_start(longest + [longest, 168] | max) }}
    and {{ column }} < {{ as_of() }}
{%- endmacro %}
