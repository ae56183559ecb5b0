select distinct date_trunc('hour', visited_at) as visited_hour from {{ source('raw', 'visits') }}
