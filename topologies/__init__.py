"""Emulated links and the Mininet topologies that are built from them."""
