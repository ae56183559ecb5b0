select customerkey as `customerKEY`, count(*) as rows_, sum(n) as `end` from {{ ref('groups') }} group by CUSTOMERKEY
