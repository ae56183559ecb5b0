select sale_id, hash(*) as fingerprint from {{ source('raw', 'sales') }}
