"""Runs a command as on a kernel without Landlock: python -m tests.without_landlock COMMAND …"""

import os
import struct
import sys

from fecbench.runners.sandbox import kernel

# linux/seccomp.h: the number of the call is loaded; landlock_create_ruleset is there not implemented.
INSTRUCTIONS = ((0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7FFF0000))
PROGRAM = b"".join(struct.pack("HBBI", *instruction) for instruction in INSTRUCTIONS)


def main() -> None:
    kernel.gain_nothing()
    kernel.filter_calls(PROGRAM)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
