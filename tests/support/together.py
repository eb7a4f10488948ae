"""Writers that come at once."""

import threading
from collections.abc import Callable


def run_together(actions: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
