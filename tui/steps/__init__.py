"""Screen 8: the steps of a measured run, a line each, and what each rank did in them."""
