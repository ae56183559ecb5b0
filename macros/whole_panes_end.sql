{# What is compared ends here: the pane that goes on would be set beside a
   finished one. Zero hours back is the start of that pane. #}
{% macro whole_panes_end(hours_back) -%}
    {{ as_of() }} - interval '{{ hours_back * 60 + var("pane_minutes") }}' minute
{%- endmacro %}
