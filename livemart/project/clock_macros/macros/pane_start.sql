{# Start of the pane of an instant, NULL for NULL: window() in a projection
   would drop the rows without a time. #}
{% macro pane_start(column) -%}
    {%- set seconds = var('pane_minutes', 5) * 60 -%}
    timestamp_seconds(
        unix_seconds({{ column }}) - pmod(unix_seconds({{ column }}), {{ seconds }})
    )
{%- endmacro %}
