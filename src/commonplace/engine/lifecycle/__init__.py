"""What happens to memories without anyone's asking: small jobs, one process at a time."""
