"""What leaves a store as a file and comes back from one."""
