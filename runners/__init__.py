"""Campaigns and trials: what runs a design and vouches for each of its results."""
