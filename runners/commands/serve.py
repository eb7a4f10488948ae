"""`fecbench serve`: the pages of a database's campaigns, while they run and afterwards."""

import sys
from typing import Annotated

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.choice import open_database
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.refusal import Refusal

PORT = 8077


def serve(
    db: arguments.Database = arguments.DATABASE,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on. Others than this machine reach it by another one than 127.0.0.1:"
            " it asks for no password.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: any that is free.")] = PORT,
) -> None:
    """Show the campaigns of a database in a browser, while they run and afterwards, until Ctrl-C.

    Each has the page that fecbench report writes; two can stand beside each other, and tables come as CSV.
    The database is opened to be read alone.
    """
    with open_database(db, read_only=True) as database:
        from fecbench.runners.commands.console.serving import Server, Site

        try:
            server = Server(host, port, Site(database).answer)
        except OSError as error:
            raise Refusal(
                f"--host {host} --port {port}: cannot be listened on: {error.strerror or error}"
            ) from None
        with server:
            if not host.startswith("127.") and host not in ("::1", "localhost"):
                note(f"whoever reaches {host} reads all of {db}: there is no password")
            say(f"{db} on {server.url} until Ctrl-C")
            sys.stdout.flush()  # a pipe would keep it to the end
            server.serve_forever()
