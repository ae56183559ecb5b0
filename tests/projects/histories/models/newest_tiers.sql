select member_id, upper(tier) as tier from {{ ref('newest') }}
