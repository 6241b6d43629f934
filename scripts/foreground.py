"""Run a command as the terminal's foreground: `foreground.py COMMAND …`.

Ctrl-C then reaches the command alone. `make` would take it as its own end and report a failure,
though the command ended in good order.
"""

import os
import signal
import sys


def main(command: list[str]) -> int:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        os.execvp(command[0], command)  # no terminal: nobody presses a key
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # to hand over the terminal from the background
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    _, status = os.waitpid(child, 0)
    os.tcsetpgrp(terminal, os.getpgrp())
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
