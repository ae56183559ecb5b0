select sale_id from {{ source('raw', 'sales') }} where exists(tags, tag -> tag = 'new')
