{# Returns each combination of the columns that more than one row has. #}
{% test unique_combination(model, columns) %}

select
    {{ columns | join(',\n    ') }},
    count(*) as row_count

from {{ model }}

group by {{ columns | join(', ') }}

having count(*) > 1

{% endtest %}
