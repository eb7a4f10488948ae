"""Sandboxes for programs of others: whatever a program does, it harms only itself."""
