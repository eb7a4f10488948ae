"""Recordings of links that other tools made, as traces: a module for each form. All may be packed by gzip."""
