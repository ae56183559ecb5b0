{# Final: no record of the window is to be expected any more. One that comes all the same is a late
   correction: it is counted, and the window stays final. #}
{% macro is_final(window_end, source_name=none, table_name=none) -%}
    coalesce({{ window_end }} <= {{ watermark(source_name, table_name) }}, false)
{%- endmacro %}
