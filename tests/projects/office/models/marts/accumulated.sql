{% set before = load_relation(this) %}
select code, amount from {{ ref('bookings') }}
{% if before is not none %} union select code, amount from {{ this }} {% endif %}
