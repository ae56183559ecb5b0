{{ config(tags=['random']) }}

-- Differs each time: whoever compares rows leaves models of this tag out.
select sale_id, rand() as ticket from {{ source('raw', 'sales') }}
