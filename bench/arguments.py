"""Types of argparse."""

import argparse


def from_one(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number from 1")
    return int(text)
