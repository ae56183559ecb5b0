select newest.member_id, cities.region
from {{ ref('newest') }} as newest join {{ source('raw', 'cities') }} as cities on newest.city = cities.city
