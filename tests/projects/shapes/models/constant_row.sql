select 1 as one, 'x' as letter
