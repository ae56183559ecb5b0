{# How complete event time is: of one source, or the least of all that declare a lateness. #}
{% macro watermark(source_name=none, table_name=none) -%}
    {%- set column = 'complete_to' if source_name is none else (source_name ~ '__' ~ table_name) | lower -%}
    {%- if execute -%}
        {%- set declared = [] -%}
        {%- for node in graph.sources.values() if ((node.config.meta or node.meta).livemart or {}).lateness -%}
            {%- do declared.append((node.source_name ~ '__' ~ node.name) | lower) -%}
        {%- endfor -%}
        {%- if source_name is none and not declared -%}
            {%- do exceptions.raise_compiler_error(
                "no source declares a lateness, so no window is ever final: add `lateness: 10 minutes` to "
                ~ "meta.livemart of the source that the model reads"
            ) -%}
        {%- elif source_name is not none and column not in declared -%}
            {%- do exceptions.raise_compiler_error(
                "source " ~ source_name ~ "." ~ table_name ~ " declares no lateness: add `lateness: 10 minutes` "
                ~ "to its meta.livemart (those that do: " ~ (declared | join(', ') or 'none') ~ ")"
            ) -%}
        {%- endif -%}
    {%- endif -%}
    (select watermarks.{{ column }} from {{ source('livemart', 'watermarks') }} as watermarks)
{%- endmacro %}
