gross - cast(gross * rate as decimal(10,2))
