{% macro keep_log_of_run() %}
  {% set log = ref('receipts', 'run_log') %}
  {% if execute %}
    {% set rows = [] %}
    {% for ended in results %}
      {% do rows.append("('" ~ invocation_id ~ "', '" ~ ended.node.name ~ "', '" ~ ended.status ~ "')") %}
    {% endfor %}
    {% if rows %}insert into {{ log }} values {{ rows | join(', ') }}{% endif %}
  {% endif %}
{% endmacro %}
