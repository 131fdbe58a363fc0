"""Ctrl-C while a command starts: one line and exit code 130, not a traceback.

The handler is set before Polars is imported, and stays: Polars adds itself to the handler that it
finds, so that Ctrl-C stops a query.
"""

import os
import signal
from types import FrameType

is_running = False
"""Whether Ctrl-C raises a KeyboardInterrupt: a command is running, and catches it."""


def expect() -> None:
    """Set the handler, unless this process ignores Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def end() -> None:
    """End the process."""
    try:
        os.write(2, b"polars-mcc: interrupted; nothing is written\n")
    finally:
        os._exit(130)


def leave() -> None:
    """From now on, Ctrl-C ends the process without a word: the command is done."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupted(number: int, frame: FrameType | None) -> None:
    if is_running and frame is not None and frame.f_code.co_filename.endswith("weakref.py"):
        # Python prints and drops an exception of a callback. So ask again, after it.
        import threading  # noqa: PLC0415 - Polars has imported it

        again = threading.Timer(0.1, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
    elif is_running:
        signal.default_int_handler(number, frame)
    else:
        end()
