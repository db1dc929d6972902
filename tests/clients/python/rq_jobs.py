"""The jobs that RQ's worker does."""
import rq


def add(a, b):
    return a + b


def fail(text):
    raise ValueError(text)


def succeed_on_call(key, call):
    count = rq.get_current_job().connection.incr(key)
    if count < call:
        raise RuntimeError("call %d" % count)
    return count
