select m.Key as K, count(distinct `größe.id`) as n from {{ ref('mapped') }} group by m.Key
