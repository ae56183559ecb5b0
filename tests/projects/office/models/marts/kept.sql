select code, amount, '{{ this.identifier }}' as me, '{{ model.unique_id }}' as id, {{ config.get('worth', 1) }} as worth from {{ ref('bookings') }} where amount >= {{ var('least') }}
