"""The layers screen: what each row of the file costs, and where a price comes from."""
