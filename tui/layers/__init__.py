"""The layers screen: what each row of the file costs, and how a price is computed."""
