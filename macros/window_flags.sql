{# A flag for each kind and length of window: whether a time is in it. What is
   compared ends with the last whole pane. #}
{% macro window_flags(column, kinds) -%}
    {%- set ends = {
        'current': as_of(),
        'compared': whole_panes_end(0),
        'last_week': whole_panes_end(168),
    } -%}
    {%- set flags = [] -%}
    {%- for kind in kinds -%}
    {%- for hours in var('window_hours') -%}
        {%- set back = {'previous': hours, 'last_week': 168}.get(kind, 0) -%}
        {%- do flags.append(
            column ~ ' >= ' ~ window_start(hours + back)
            ~ ' and ' ~ column ~ ' < ' ~ ends.get(kind, window_start(hours))
            ~ ' as is_' ~ kind ~ '_' ~ hours ~ 'h'
        ) -%}
    {%- endfor -%}
    {%- endfor -%}
    {{ flags | join(',\n        ') }}
{%- endmacro %}
