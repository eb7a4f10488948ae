"""What a person types: a file for each command, and beside them what several commands share.

`command_line` loads a command's module when the command is called, so that `fecbench --help` need not wait
for libraries. An import inside a function is of what one option or one step alone needs, and what takes
longer to load than the rest of the command takes to run.

Only this package imports typer and rich. A command is a thin door: it reads its options, calls functions that
a notebook could call, and prints. No command imports another; what several of them need is in

- `arguments`  the options and arguments, each with one name and one help text
- `choice`     which database, campaign, design or metric is meant
- `destination`  what `--output` and `--plot` may name, and what is done when it exists
- `document`   the JSON documents
- `tables`     tables and how they are printed
- `summary`    what a campaign comes to, as `show` and `run` print it
- `progress`   how a campaign goes on
- `terminal`   text as a terminal may be given it
"""
