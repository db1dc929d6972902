#!/usr/bin/env python3
"""Runs the cases against a server and holds the result against the list of those known to fail.

usage: check.py HOST PORT NAME [--strict]

Prints both counts. Fails if a case fails that is not in failing.txt, or if one of the list passes: then it is to be
taken off. With --strict every case has to pass.
"""
import json, os, subprocess, sys, tempfile

def main():
    host, port, name = sys.argv[1:4]
    strict = "--strict" in sys.argv[4:]
    folder = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        subprocess.run(
            [sys.executable, os.path.join(folder, "run_cases.py"), host, port, "--json", report],
            stdout=subprocess.DEVNULL,
        )
        with open(report) as file:
            result = json.load(file)
    known = set()
    if not strict:
        with open(os.path.join(folder, "failing.txt")) as file:
            known = {line.strip() for line in file if line.strip() and not line.startswith("#")}
    failed = {fail["id"] for fail in result["fails"]}
    print("cases on %s: %d passed, %d failed" % (name, result["passed"], result["failed"]))
    for fail in result["fails"]:
        if fail["id"] not in known:
            print("  not known to fail: %(id)s step %(step)d\n    want %(expected)s\n    got  %(got)s" % fail)
    passing = sorted(known - failed)
    if passing:
        print("  to be taken off failing.txt: " + ", ".join(passing))
    return 1 if failed - known or passing else 0

if __name__ == "__main__":
    sys.exit(main())
