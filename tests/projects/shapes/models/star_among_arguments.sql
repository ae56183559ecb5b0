select sale_id, md5(to_json(struct(*))) as fingerprint from {{ source('raw', 'sales') }}
