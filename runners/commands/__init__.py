"""The command line: a file for each command.

`command_line` loads a command's module when the command is called, so that `fecbench --help` need not wait
for libraries. An import inside a function is of what one option or one step alone needs, and what takes
longer to load than the rest of the command takes to run.

Only this package imports typer and rich. A command is a thin door: it reads its options, calls functions that
a notebook could call, and prints. No command imports another; `console` has what several of them share.
"""
