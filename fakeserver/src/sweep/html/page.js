"use strict";
(() => {
    const report = JSON.parse(document.getElementById("report").textContent);
    const root = document.documentElement;
    root.classList.add("js");

    const findings = [...document.querySelectorAll(".finding")].map((article) => ({
        article,
        data: report.findings[Number(article.dataset.finding)],
        steps: [...article.querySelectorAll(".step")],
        detail: article.querySelector(".detail"),
        diagram: article.querySelector(".diagram"),
    }));
    let current = null;

    function element(name, text, className) {
        const made = document.createElement(name);
        if (text !== undefined) made.textContent = text;
        if (className) made.className = className;
        return made;
    }

    // The walk: one step of one finding is current, and those behind it are still to come.
    function select(finding, index, focus) {
        if (current && current.finding !== finding) leave(current.finding);
        current = { finding, index };
        finding.article.classList.add("walking");
        const order = finding.steps.map((step) => Number(step.dataset.step));
        for (const [at, step] of finding.steps.entries()) {
            step.classList.toggle("current", at === index);
            step.classList.toggle("later", order[at] > order[index]);
            if (at === index) step.setAttribute("aria-current", "step");
            else step.removeAttribute("aria-current");
        }
        show(finding, index);
        const step = finding.steps[index];
        if (focus) step.focus({ preventScroll: true });
        step.scrollIntoView({ block: "nearest" });
    }

    function leave(finding) {
        finding.article.classList.remove("walking");
        idle(finding);
        for (const step of finding.steps) {
            step.classList.remove("current", "later");
            step.removeAttribute("aria-current");
        }
        requestAnimationFrame(() => draw(finding));
    }

    // Beside a diagram that nobody walks.
    function idle(finding) {
        const count = finding.steps.length;
        if (count === 0) return;
        const start = element("button", "Walk through it");
        start.type = "button";
        start.addEventListener("click", () => select(finding, 0, true));
        finding.detail.replaceChildren(element("p", `${count} steps. Click one to see all of it.`), start);
        finding.detail.hidden = false;
    }

    const names = { a: "A", b: "B", after: "after", server: "the schedule" };
    const kinds = { read: "reads", write: "writes", local: "nothing that others can see", event: "done by the schedule" };

    function show(finding, index) {
        const step = finding.data.steps[Number(finding.steps[index].dataset.step)];
        const place = element("p", undefined, "place");
        place.append(element("span", `Step ${index + 1} of ${finding.steps.length}`));
        for (const [text, by, label] of [["\u2191", -1, "Step before"], ["\u2193", 1, "Next step"]]) {
            const button = element("button", text);
            button.type = "button";
            button.setAttribute("aria-label", label);
            button.addEventListener("click", () => walk(by, false));
            place.append(button);
        }
        const list = element("dl");
        const fact = (name, value, code) => {
            if (!value) return;
            const held = element("dd");
            held.append(code ? element("code", visible(value)) : value);
            list.append(element("dt", name), held);
        };
        const who = names[step.role] || step.role;
        fact("who", step.connection ? `${who}, connection ${step.connection}` : who);
        fact("command", step.command, true);
        fact("reply", step.reply, true);
        fact("access", kinds[step.access] || step.access);
        fact("note", step.note);
        fact("cause", finding.steps[index].querySelector(".badge")?.textContent);
        finding.detail.replaceChildren(place, list);
        draw(finding);
    }

    // What cannot be seen, or turns the text around it, is spelled out, as everywhere on the page.
    function visible(text) {
        return text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
            (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
    }

    function walk(by, focus = true) {
        const walkable = findings.filter((finding) => finding.steps.length > 0);
        if (walkable.length === 0) return;
        if (!current) return select(walkable[0], by > 0 ? 0 : walkable[0].steps.length - 1, focus);
        const { finding, index } = current;
        if (finding.steps[index + by]) return select(finding, index + by, focus);
        const other = walkable[walkable.indexOf(finding) + by];
        if (other) select(other, by > 0 ? 0 : other.steps.length - 1, focus);
    }

    function jump(by) {
        const walkable = findings.filter((finding) => finding.steps.length > 0);
        const at = current ? walkable.indexOf(current.finding) + by : 0;
        const finding = walkable[at];
        if (!finding) return;
        finding.article.scrollIntoView({ block: "start" });
        select(finding, 0, true);
    }

    const keys = {
        j: () => walk(1), k: () => walk(-1), ArrowDown: () => walk(1), ArrowUp: () => walk(-1),
        ArrowRight: () => walk(1), ArrowLeft: () => walk(-1), n: () => jump(1), p: () => jump(-1),
    };
    document.addEventListener("keydown", (event) => {
        const action = keys[event.key];
        if (!action || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        action();
    });

    // The arrows of a cause: from what was read to what made it untrue, from there to what was done all the same.
    function draw(finding) {
        const drawn = finding.diagram.querySelector(".arrows");
        drawn.replaceChildren();
        const cause = finding.data.cause;
        if (!cause) return;
        const box = (at) => finding.diagram.querySelector(`.step[data-step="${at}"]`);
        // Its old size must not keep the diagram from shrinking.
        drawn.setAttribute("width", 0);
        drawn.setAttribute("height", 0);
        drawn.setAttribute("width", finding.diagram.scrollWidth);
        drawn.setAttribute("height", finding.diagram.scrollHeight);
        for (const [from, to] of [[cause.read, cause.written], [cause.written, cause.overwritten]]) {
            if (to !== null && box(from) && box(to)) arrow(drawn, finding.diagram, box(from), box(to));
        }
    }

    function arrow(drawn, diagram, from, to) {
        const origin = diagram.getBoundingClientRect();
        const place = (node) => {
            const { left, top, width, height } = node.getBoundingClientRect();
            const x = left - origin.left + diagram.scrollLeft - diagram.clientLeft;
            const y = top - origin.top + diagram.scrollTop - diagram.clientTop;
            return { left: x, right: x + width, top: y, bottom: y + height, middle: y + height / 2, all: node.closest(".event") !== null };
        };
        // Arrows run between the lanes, where there is no text.
        const gap = parseFloat(getComputedStyle(from.closest("td")).paddingRight);
        const line = route(place(from), place(to), gap);
        const path = document.createElementNS(drawn.namespaceURI, "path");
        path.setAttribute("d", `M ${line.from} C ${line.bends[0]} ${line.bends[1]} ${line.to}`);
        const head = document.createElementNS(drawn.namespaceURI, "path");
        head.setAttribute("class", "head");
        head.setAttribute("d", "M 0 0 L -8 -5 L -8 5 Z");
        head.setAttribute("transform", `translate(${line.to}) rotate(${line.turn})`);
        drawn.append(path, head);
    }

    function route(one, other, gap) {
        if (other.all) {
            const x = one.right + gap;
            return { from: [one.right, one.middle], bends: [[x, one.middle], [x, one.middle]], to: [x, other.top], turn: 90 };
        }
        if (one.all) {
            const x = other.right + gap;
            return { from: [x, one.bottom], bends: [[x, other.middle], [x, other.middle]], to: [other.right, other.middle], turn: 180 };
        }
        const right = one.right <= other.left;
        const left = other.right <= one.left;
        const from = [left ? one.left : one.right, one.middle];
        const to = [right ? other.left : other.right, other.middle];
        const out = [from[0] + (left ? -2 : 2) * gap, from[1]];
        const back = [to[0] + (right ? -2 : 2) * gap, to[1]];
        return { from, bends: [out, back], to, turn: right ? 0 : 180 };
    }

    for (const finding of findings) {
        idle(finding);
        for (const [index, step] of finding.steps.entries()) {
            step.addEventListener("click", () => select(finding, index, false));
        }
        new ResizeObserver(() => draw(finding)).observe(finding.diagram.querySelector("table"));
        draw(finding);
    }

    async function copy(button, code) {
        try {
            await navigator.clipboard.writeText(code.textContent);
        } catch {
            const range = document.createRange();
            range.selectNodeContents(code);
            getSelection().removeAllRanges();
            getSelection().addRange(range);
            if (!document.execCommand("copy")) return;
        }
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
    }
    for (const button of document.querySelectorAll(".copy")) {
        button.hidden = false;
        button.addEventListener("click", () => copy(button, button.parentElement.querySelector("pre code")));
    }
})();
