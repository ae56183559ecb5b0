select shopid as `Shop.Id`, `Group` as `group`, _old_count, `timestamp` as `End` from {{ source('shop', 'visits') }}
