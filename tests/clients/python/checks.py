"""What the Python suites share: named checks, deadlines, and processes that end with the check that started them."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import redis

CHECK_SECONDS = 60
CHECKS = []


def check(function):
    """Makes a function one of this suite's checks: it is called with the server's URL, on an empty server."""
    CHECKS.append(function)
    return function


def each_protocol(function):
    """A check that is run once in each protocol: it is called with the URL and 2 or 3."""
    for protocol in (2, 3):
        def run(url, protocol=protocol):
            function(url, protocol)
        run.__name__ = "%s (RESP%d)" % (function.__name__, protocol)
        CHECKS.append(run)
    return function


def eventually(condition, seconds=20, what="the condition"):
    """Waits until a condition holds and returns what it returned; fails when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("%s did not come about within %s seconds" % (what, seconds))
        time.sleep(0.02)


def raises(kind, start, function, *arguments, **named):
    """Calls a function that has to raise an error of a kind whose text starts so."""
    try:
        value = function(*arguments, **named)
    except kind as error:
        assert str(error).startswith(start), "%r, wanted %r" % (error, start)
        return error
    raise AssertionError("%s %r was not raised: %r" % (kind.__name__, start, value))


@contextlib.contextmanager
def process(*arguments, **environment):
    """A process that is ended with the block; its output is shown if the block fails."""
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__)), **environment),
        )
        try:
            yield child
        except BaseException:
            output.seek(0)
            print("--- output of %s:\n%s---" % (" ".join(arguments[:4]), output.read()))
            raise
        finally:
            child.terminate()
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def main():
    """Runs the checks on the server whose URL is the program's argument; the exit status tells whether all passed."""
    url = sys.argv[1]
    suite = os.path.basename(sys.argv[0])
    failed = 0

    def out_of_time(*_):
        raise TimeoutError("not done within %d seconds" % CHECK_SECONDS)

    signal.signal(signal.SIGALRM, out_of_time)
    for function in CHECKS:
        with redis.Redis.from_url(url) as client:
            client.flushall()
        signal.alarm(CHECK_SECONDS)
        try:
            function(url)
        except Exception:
            failed += 1
            print("FAILED %s: %s\n%s" % (suite, function.__name__, traceback.format_exc()), flush=True)
        finally:
            signal.alarm(0)
    print("%s: %d passed, %d failed" % (suite, len(CHECKS) - failed, failed), flush=True)
    sys.exit(1 if failed or not CHECKS else 0)
