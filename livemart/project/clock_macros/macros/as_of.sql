{# The one "now" of a snapshot. Models never ask the machine for the time: batch
   and stream must see the same moment, and a replay must see it again. #}
{% macro as_of() -%}
    (select clock.as_of from {{ source('livemart', 'clock') }} as clock)
{%- endmacro %}
