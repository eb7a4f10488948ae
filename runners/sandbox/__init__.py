"""What programs of others run in: whatever one does, it harms itself alone."""
