"""Parts that several commands share.

- `arguments`: the options and arguments, each with one name and one help text
- `choice`: which database, campaign, design or metric is meant
- `destination`: what `--output` and `--plot` may name, and what is done when it exists
- `document`: the JSON documents
- `tables`: tables and how they are printed
- `summary`: what a campaign comes to, as `show` and `run` print it
- `progress`: how a campaign goes on
- `terminal`: text as a terminal may be given it
"""
