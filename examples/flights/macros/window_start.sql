{# Hours, not days: a day-time interval adds local days (SPARK-34761). #}
{% macro window_start(hours) -%}
(
    select clock.as_of - interval {{ hours }} hours
    from {{ source('livemart', 'clock') }} as clock
)
{%- endmacro %}
