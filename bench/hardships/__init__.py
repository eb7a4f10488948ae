"""What happens to a command that is killed, stopped, out of disk, or whose clock leaps."""
