{% macro label(text) %}{{ return(adapter.dispatch('label', 'shared')(text)) }}{% endmacro %}
{% macro default__label(text) %}concat('shared ', {{ text }}){% endmacro %}
