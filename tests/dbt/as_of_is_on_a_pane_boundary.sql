{# Windows are whole panes: between two boundaries the newest pane would count
   orders that are still to come. Only --as-of can say such a moment. #}
{{ config(severity='warn') }}

select as_of

from {{ source('livemart', 'clock') }}

where as_of <> {{ pane_start('as_of') }}
