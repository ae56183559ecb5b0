{{ config(materialized='incremental', full_refresh=false) }}
select
    cast(null as string) as run_id,
    cast(null as string) as node,
    cast(null as string) as status
where 1 = 0
