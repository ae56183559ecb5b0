{{ config(materialized='ephemeral') }}
select explode(sequence(
    date '{{ var('receipts__first_day') }}',
    date_add(date '{{ var('receipts__first_day') }}', {{ var('receipts__days') - 1 }})
)) as day
