"""Stands in for `fakeserver sweep --host`: plays the steps of the environment variable PEER_STEPS, and reports what it was told."""

import json
import os
import sys
import threading
import time

ended = {}
arrived = threading.Condition()
input_is_over = False


def listen():
    global input_is_over
    for line in sys.stdin:
        message = json.loads(line)
        with arrived:
            ended[message["ended"], message["run"]] = message
            arrived.notify_all()
    with arrived:
        input_is_over = True
        arrived.notify_all()


def say(**message):
    print(json.dumps(message), flush=True)


def main():
    threading.Thread(target=listen, daemon=True).start()
    for step in json.loads(os.environ["PEER_STEPS"]):
        todo, rest = step[0], step[1:]
        if todo == "run":
            role, run, url = rest
            say(do="run", role=role, run=run, url=url)
        elif todo == "stop":
            role, run = rest
            say(do="stop", role=role, run=run)
        elif todo == "await":
            with arrived:
                if not arrived.wait_for(lambda: tuple(rest) in ended or input_is_over, 30):
                    sys.exit(f"{rest} has not ended")
        elif todo == "sleep":
            time.sleep(rest[0])
        elif todo == "say":
            sys.stderr.write(rest[0])
        elif todo == "report":
            findings, text = rest
            report = {"format": 1, "argv": sys.argv[1:], "ended": list(ended.values()), "findings": findings}
            say(do="report", report=report, text=text)
        elif todo == "exit":
            sys.exit(rest[0])


main()
