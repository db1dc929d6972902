"""A program in a pseudo-terminal, spoken to as a person would."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program that is ended with the `with` block; `prompt` is a pattern for what it shows when it waits for a line."""

    def __init__(self, arguments, prompt, columns=200):
        self.prompt = re.compile("(?:%s)$" % prompt)
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = dict(os.environ, TERM="xterm", REDISCLI_HISTFILE="/dev/null", HOME="/nonexistent")

        def own_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen(
            arguments, stdin=slave, stdout=slave, stderr=slave, env=environment,
            start_new_session=True, preexec_fn=own_terminal,
        )
        os.close(slave)
        self.shown = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        os.close(self.master)

    def send(self, keys):
        """Presses keys; what was shown before is forgotten."""
        self.shown = ""
        os.write(self.master, keys.encode())

    def read_until(self, pattern, seconds=10):
        """Waits until what is shown since the last keys matches a pattern, and returns it all."""
        deadline = time.monotonic() + seconds
        wanted = re.compile(pattern) if isinstance(pattern, str) else pattern
        while True:
            text = ESCAPES.sub("", self.shown).replace("\r\n", "\n")
            if wanted.search(text):
                return text
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError("%r was not shown, but %r" % (wanted.pattern, text))
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.shown += os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError("the program ended before it showed %r: %r" % (wanted.pattern, text)) from None

    def ask(self, line):
        """Enters a line and returns what is shown for it until the next prompt, and that prompt."""
        self.send(line + "\r")
        text = self.read_until(re.compile(r"\n(?:.*\n)*.*" + self.prompt.pattern))
        answer = text.split("\n", 1)[1]
        prompt = self.prompt.search(answer)
        return answer[:prompt.start()].rstrip("\n"), prompt.group()

    def ended(self, seconds=10):
        """Waits for the program's end and returns its exit status."""
        return self.child.wait(seconds)
