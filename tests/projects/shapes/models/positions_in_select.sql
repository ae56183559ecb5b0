select *, posexplode_outer(tags) as (position, tag) from {{ source('raw', 'sales') }} where amount is not null
