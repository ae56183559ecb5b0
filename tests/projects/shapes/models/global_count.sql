select count(*) as visit_count from {{ source('raw', 'visits') }}
