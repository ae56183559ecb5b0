{% macro as_of() -%}
    (select clock.as_of from {{ source('livemart', 'clock') }} as clock)
{%- endmacro %}
