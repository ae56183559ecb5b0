{{ config(enabled=var('receipts__uses_refunds')) }}
select refund_id from {{ source('tills', 'refunds') }}
