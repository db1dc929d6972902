"""What a person finds on the pages of the sweep and of the explorer: usage: page.py BROWSER FOLDER-OF-PAGES [FOLDER-FOR-SCREENSHOTS]

Each function whose name begins with `check_` is a check; its name says what holds.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDE, NARROW, NARROWEST = 1400, 420, 340

# All text that can be seen, whose colour is too near to what is behind it (below 4.5 to 1, as WCAG AA asks).
PALE_TEXT = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length < 4 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const pale = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest("script, .unseen, .later")) continue;
        const [one, other] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
        const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (ratio < 4.5) pale.push(`${ratio.toFixed(2)} ${node.className || node.tagName}: ${walker.currentNode.data.trim().slice(0, 40)}`);
    }
    return pale;
}"""


class Visit:
    """A page that is open, and all that went wrong with it."""

    def __init__(self, browser, folder, name="findings.html", width=WIDE, scheme="light", script=True, rights=()):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script, permissions=list(rights)
        )
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("console", lambda message: self.wrong.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked(request.url))
        self.url = (Path(folder) / name).as_uri()
        self.page.goto(self.url)

    def asked(self, url):
        if url != self.url:
            self.wrong.append(f"request: {url}")

    def __enter__(self):
        return self.page

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            assert not self.wrong, self.wrong


def report_of(page):
    return json.loads(page.locator("#report").text_content())


def current(page):
    """The number of the finding and of the step at which the walk is."""
    found = page.locator(".step.current")
    if found.count() == 0:
        return None
    assert found.count() == 1
    return found.evaluate("step => [Number(step.closest('.finding').dataset.finding), Number(step.dataset.step)]")


def check_hostile_names_are_text_and_run_nothing(browser, folder):
    with Visit(browser, folder) as page:
        page.wait_for_timeout(300)
        assert page.locator("img").count() == 0
        assert "</script><img src=x onerror=" in page.locator("#finding-4 h2").inner_text()
        assert "</title><script>alert(2)</script>" in page.locator(".programs").inner_text()
        assert page.title() == "Race sweep: 4 findings"


def check_everything_is_there_without_the_script(browser, folder):
    with Visit(browser, folder) as page:
        report = report_of(page)
    with Visit(browser, folder, script=False) as page:
        text = page.locator("body").inner_text()
        for finding in report["findings"]:
            for part in (finding["schedule"], finding["title"], finding["replay"]):
                assert part in text, part
        assert page.locator(".step >> visible=true").count() > 20
        assert "DEL lock:1" in text and "the reply is lost" in text
        assert page.locator(".copy >> visible=true").count() == 0
        assert page.locator(".detail >> visible=true").count() == 0


def check_keys_walk_the_steps_and_the_findings(browser, folder):
    with Visit(browser, folder) as page:
        assert current(page) is None
        for key, place in [
            ("j", [0, 3]), ("ArrowDown", [0, 7]), ("ArrowRight", [0, 8]), ("k", [0, 7]), ("ArrowUp", [0, 3]), ("ArrowLeft", [0, 3]),
            ("j", [0, 7]), ("j", [0, 8]), ("j", [0, 9]), ("j", [1, 3]), ("k", [0, 9]), ("n", [1, 3]), ("n", [2, 0]), ("p", [1, 3]),
        ]:
            page.keyboard.press(key)
            assert current(page) == place, (key, place, current(page))
            assert page.evaluate("document.activeElement.matches('.step.current')"), key
        page.keyboard.press("Control+j")
        assert current(page) == [1, 3]


def check_a_click_shows_all_of_a_step(browser, folder):
    with Visit(browser, folder) as page:
        step = report_of(page)["findings"][2]["steps"][7]
        page.locator("#finding-3 .step[data-step='7']").click()
        assert current(page) == [2, 7]
        shown = page.locator("#finding-3 .detail").inner_text()
        assert step["command"] in shown
        assert "B, connection 1" in shown and "Step 5 of 6" in shown
        later = page.locator("#finding-3 .step.later").evaluate_all("steps => steps.map((step) => Number(step.dataset.step))")
        assert later == [8], later
        page.locator("#finding-3 .detail").get_by_label("Next step").click()
        assert current(page) == [2, 8]
        assert "overwritten" in page.locator("#finding-3 .detail").inner_text()
        page.locator("#finding-1 .step").first.click()
        assert page.locator("#finding-3 .later, #finding-3 .current").count() == 0


def check_arrows_lead_from_read_to_written_to_overwritten(browser, folder):
    near = """(diagram) => [...diagram.querySelectorAll(".arrows path:not(.head)")].map((path) => {
        const origin = diagram.querySelector(".arrows").getBoundingClientRect();
        const nearest = (length) => {
            const at = path.getPointAtLength(length);
            const distance = (box) => Math.hypot(
                Math.max(box.left - origin.left - at.x, 0, at.x - box.right + origin.left),
                Math.max(box.top - origin.top - at.y, 0, at.y - box.bottom + origin.top));
            const steps = [...diagram.querySelectorAll(".step")].map((step) => [distance(step.getBoundingClientRect()), Number(step.dataset.step)]);
            return steps.sort((one, other) => one[0] - other[0])[0];
        };
        return [nearest(0), nearest(path.getTotalLength())];
    })"""
    for width in (WIDE, NARROW):
        with Visit(browser, folder, width=width) as page:
            for number, finding in enumerate(report_of(page)["findings"], 1):
                drawn = page.locator(f"#finding-{number} .diagram").evaluate(near)
                cause = finding["cause"]
                wanted = []
                if cause:
                    wanted = [[cause["read"], cause["written"]]]
                    if cause["overwritten"] is not None:
                        wanted.append([cause["written"], cause["overwritten"]])
                assert [[one[1], other[1]] for one, other in drawn] == wanted, (width, number, drawn)
                assert all(end[0] < 2 for arrow in drawn for end in arrow), (width, number, drawn)


def check_differences_stand_out(browser, folder):
    with Visit(browser, folder) as page:
        row = page.locator("#finding-1 .compare tr.wrong")
        assert row.locator("td.here").inner_text() == 'string "4"'
        assert row.locator("td.here mark").inner_text() == "4"
        assert row.locator("td.order mark").all_inner_texts() == ["3", "3"]
        assert page.locator("#finding-1 .compare tr.varies").count() == 2


def check_the_replay_command_is_copied(browser, folder):
    with Visit(browser, folder, rights=("clipboard-read", "clipboard-write")) as page:
        # The clipboard answers when it pleases: the button says so only then.
        page.locator("#finding-4 .copy").click()
        page.locator("#finding-4 .copy", has_text="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == report_of(page)["findings"][3]["replay"], copied
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
        page.locator("#finding-1 .copy").click()
        page.locator("#finding-1 .copy", has_text="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == report_of(page)["findings"][0]["replay"], copied


def check_text_is_readable_in_light_and_dark(browser, folder):
    grounds = []
    for scheme in ("light", "dark"):
        for name in ("findings.html", "clean.html"):
            with Visit(browser, folder, name=name, scheme=scheme) as page:
                page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
                pale = page.evaluate(PALE_TEXT)
                assert not pale, (scheme, pale[:10])
                grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[2], grounds


def check_no_page_is_wider_than_its_window(browser, folder):
    for width in (WIDE, 800, NARROW, NARROWEST):
        for script in (True, False):
            with Visit(browser, folder, width=width, script=script) as page:
                page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (width, script, wide)


def check_the_current_step_is_never_hidden_behind_its_details(browser, folder):
    for width in (WIDE, NARROW):
        with Visit(browser, folder, width=width) as page:
            for _ in range(12):
                page.keyboard.press("j")
                page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
                step = page.locator(".step.current").bounding_box()
                detail = page.locator(".walking .detail").bounding_box()
                apart = (
                    step["y"] + step["height"] <= detail["y"]
                    or detail["y"] + detail["height"] <= step["y"]
                    or step["x"] + step["width"] <= detail["x"]
                )
                assert apart and 0 <= step["y"] <= 900 - 20, (width, current(page), step, detail)


def check_a_clean_page_says_so(browser, folder):
    with Visit(browser, folder, name="clean.html") as page:
        head = page.locator("h1").inner_text()
        assert head == "no findings: all 14 single-preemption schedules of these two programs, these inputs", head
        page.keyboard.press("j")
        assert current(page) is None


EXPLORED = ("lost-update.html", "faults.html", "deep.html", "long.html")


def step_of(page):
    """The number of the step at which the walk is."""
    place = current(page)
    return None if place is None else place[1]


def check_explorer_says_everything_without_the_script(browser, folder):
    for name in EXPLORED:
        with Visit(browser, folder, name=name) as page:
            report = report_of(page)
        with Visit(browser, folder, name=name, script=False) as page:
            text = page.locator("body").inner_text()
            for part in ("property", "details", "schedule", "workload"):
                assert report[part] in text, (name, report[part])
            assert report["replay"] in text
    with Visit(browser, folder, name="lost-update.html", script=False) as page:
        text = page.locator("body").inner_text()
        assert 'string "5"' in text and 'string "4"' in text
        assert "yes, the same on redis-server 7.0.15" in text
        assert page.locator(".copy >> visible=true").count() == 0
        assert page.locator(".step .change >> visible=true").count() == 2


def check_explorer_runs_no_foreign_script(browser, folder):
    with Visit(browser, folder, name="lost-update.html") as page:
        page.wait_for_timeout(300)
        assert page.locator("img").count() == 0
        assert "</title><script>alert(2)</script>" in page.locator(".programs").inner_text()
        assert "<b>one</b>" in page.locator(".details").inner_text()
        assert page.title() == "Explorer: serializable"


def check_explorer_walks_by_keys_and_shows_the_key_space_of_each_step(browser, folder):
    with Visit(browser, folder, name="lost-update.html") as page:
        seen = []
        for _ in range(4):
            page.keyboard.press("j")
            changed = page.locator(".detail .keys-now tr.changed")
            told = changed.inner_text().split() if changed.count() else None
            seen.append((step_of(page), told))
        assert [at for at, _ in seen] == [0, 1, 2, 3], seen
        assert [told is not None for _, told in seen] == [False, False, True, False], seen
        assert seen[2][1] == ['"stock"', "string", '"5"', "string", '"4"'], seen
        assert "key space after step 3" in page.locator(".detail").inner_text().lower()
        assert '"item:1"' in page.locator(".detail .keys-now").inner_text()
        page.keyboard.press("k")
        assert step_of(page) == 2
        assert "buyer 2 (b)" in page.locator(".detail").inner_text()


def check_explorer_names_dependencies_that_lead_there(browser, folder):
    with Visit(browser, folder, name="deep.html") as page:
        page.locator(".step[data-step='102']").click()
        page.locator(".detail button.to", has_text="step 101: ZADD timers 200 m").click()
        assert step_of(page) == 101
        # The cause's own two arrows, from 50 to 101 and on to 102, are no fainter ones.
        assert page.locator(".arrows path:not(.depends):not(.head)").count() == 2
        page.locator(".left summary").first.click()
        assert page.locator(".left li >> visible=true").count() == 49
    with Visit(browser, folder, name="long.html") as page:
        report = report_of(page)
        cause = report["cause"] or {"read": None, "written": None, "overwritten": None}
        causes = [(cause["read"], cause["written"]), (cause["written"], cause["overwritten"])]
        pairs = [(one, at) for at, step in enumerate(report["steps"]) for one in step["after"]]
        pairs = [pair for pair in pairs if pair not in causes]
        at = next(step for step in range(20, len(report["steps"])) if sum(step in pair for pair in pairs) >= 2)
        page.locator(f".step[data-step='{at}']").click()
        near = page.locator(".arrows path.depends.near:not(.head)").count()
        assert near == sum(at in pair for pair in pairs), (at, near)


def check_explorer_copies_the_replay_command(browser, folder):
    with Visit(browser, folder, name="lost-update.html", rights=("clipboard-read", "clipboard-write")) as page:
        page.locator(".copy").click()
        page.locator(".copy", has_text="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == report_of(page)["replay"], copied


def check_explorer_is_readable_in_light_and_dark_and_fits(browser, folder):
    for name in EXPLORED:
        for scheme in ("light", "dark"):
            with Visit(browser, folder, name=name, scheme=scheme) as page:
                page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
                page.locator(".step").first.click()
                page.evaluate("document.querySelector('.walking').classList.remove('walking')")
                pale = page.evaluate(PALE_TEXT)
                assert not pale, (name, scheme, pale[:10])
        for width in (WIDE, 800, NARROW, NARROWEST):
            for script in (True, False):
                with Visit(browser, folder, name=name, width=width, script=script) as page:
                    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width, (name, width, script, wide)


def check_explorer_long_runs_stay_readable(browser, folder):
    with Visit(browser, folder, name="long.html") as page:
        assert page.locator("thead th.lane").count() == 6
        # What a box says is not squeezed into a column of letters.
        narrow = page.locator(".step").evaluate_all("steps => Math.min(...steps.map((step) => step.getBoundingClientRect().width))")
        assert narrow >= 90, narrow
        for _ in range(20):
            page.keyboard.press("j")
        step = page.locator(".step.current").bounding_box()
        assert 0 <= step["y"] <= 880, step


def screenshots(browser, folder, target):
    for scheme in ("light", "dark"):
        for label, width in (("wide", WIDE), ("narrow", NARROW)):
            with Visit(browser, folder, width=width, scheme=scheme) as page:
                page.keyboard.press("j")
                page.keyboard.press("j")
                page.screenshot(path=Path(target) / f"{scheme}-{label}-walk.png")
                for number in range(1, 5):
                    page.locator(f"#finding-{number}").screenshot(path=Path(target) / f"{scheme}-{label}-{number}.png")
    with Visit(browser, folder, script=False) as page:
        page.screenshot(path=Path(target) / "without-script.png", full_page=True)
    with Visit(browser, folder, name="clean.html") as page:
        page.screenshot(path=Path(target) / "clean.png")
    for scheme in ("light", "dark"):
        for label, width in (("wide", WIDE), ("narrow", NARROW)):
            for name in EXPLORED:
                with Visit(browser, folder, name=name, width=width, scheme=scheme) as page:
                    page.screenshot(path=Path(target) / f"explorer-{scheme}-{label}-{Path(name).stem}.png", full_page=name != "long.html")
                    for _ in range(3):
                        page.keyboard.press("j")
                    page.wait_for_timeout(100)
                    page.screenshot(path=Path(target) / f"explorer-{scheme}-{label}-{Path(name).stem}-walk.png")
    with Visit(browser, folder, name="lost-update.html", script=False) as page:
        page.screenshot(path=Path(target) / "explorer-without-script.png", full_page=True)


def main():
    program, folder = sys.argv[1:3]
    failed = 0
    checks = {name: check for name, check in globals().items() if name.startswith("check_")}
    with sync_playwright() as playwright:
        # The browser's own sandbox does not work for root.
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=options)
        for name, check in checks.items():
            sentence = name.removeprefix("check_").replace("_", " ")
            try:
                check(browser, folder)
                print(f"ok    {sentence}")
            except Exception:
                failed += 1
                print(f"FAIL  {sentence}")
                traceback.print_exc()
        if len(sys.argv) > 3:
            screenshots(browser, folder, sys.argv[3])
        browser.close()
    print(f"browser: {len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
