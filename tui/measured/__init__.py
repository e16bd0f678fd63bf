"""What the screens show of a measured run where that is not what they show of a simulated one."""
