"use strict";
(() => {
    const report = JSON.parse(document.getElementById("report").textContent);
    const root = document.documentElement;
    root.classList.add("js");

    const findings = [...document.querySelectorAll(".finding")].map((article) => ({
        article,
        data: report.findings ? report.findings[Number(article.dataset.finding)] : report,
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

    const kinds = { read: "reads", write: "writes", local: "nothing that others can see", event: "done by the schedule" };

    function show(finding, index) {
        const step = finding.data.steps[Number(finding.steps[index].dataset.step)];
        const place = element("p", undefined, "place");
        const count = `${index + 1} of ${finding.steps.length}`;
        place.append(element("span", finding.data.keys ? `Step ${finding.steps[index].dataset.step} (${count} shown)` : `Step ${count}`));
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
        fact("who", finding.steps[index].dataset.who);
        fact("command", step.command, true);
        fact("reply", step.reply, true);
        fact("access", kinds[step.access] || step.access);
        fact("note", step.note);
        fact("cause", finding.steps[index].querySelector(".badge")?.textContent);
        fact("depends on", dependencies(finding, step));
        finding.detail.replaceChildren(place, list);
        if (finding.data.keys) finding.detail.append(...keyspace(finding, Number(finding.steps[index].dataset.step)));
        point(finding);
    }

    // The steps whose order to this one matters, as buttons where they are shown.
    function dependencies(finding, step) {
        if (!step.after || step.after.length === 0) return null;
        const list = element("span");
        for (const at of step.after) {
            const index = finding.steps.findIndex((other) => Number(other.dataset.step) === at);
            const text = `step ${at}: ${finding.data.steps[at].command}`;
            const link = element(index < 0 ? "span" : "button", text, "to");
            if (index >= 0) {
                link.type = "button";
                link.addEventListener("click", () => select(finding, index, true));
            }
            list.append(link);
        }
        return list;
    }

    // All keys behind a step, those that it changed first.
    function keyspace(finding, until) {
        const keys = new Map(finding.data.keys.map(({ key, value }) => [key, value]));
        for (const { changes } of finding.data.steps.slice(0, until + 1)) {
            for (const { key, after } of changes) {
                if (after === null) keys.delete(key);
                else keys.set(key, after);
            }
        }
        const table = element("table", undefined, "keys-now");
        const row = (key, before, after) => {
            const made = element("tr", undefined, before === after ? undefined : "changed");
            const head = element("th");
            head.scope = "row";
            head.append(element("code", visible(key)));
            const value = element("td");
            if (before !== after) value.append(element("del", before === null ? "(none)" : visible(before)), " ");
            value.append(before === after ? element("code", visible(after)) : element("ins", after === null ? "(gone)" : visible(after)));
            made.append(head, value);
            table.append(made);
        };
        const { changes } = finding.data.steps[until];
        for (const { key, before, after } of changes) row(key, before, after);
        const changed = new Set(changes.map(({ key }) => key));
        const others = [...keys].filter(([key]) => !changed.has(key)).sort();
        for (const [key, value] of others.slice(0, 60)) row(key, value, value);
        const title = element("h3", `Key space after step ${until}`);
        if (table.rows.length === 0) return [title, element("p", "empty")];
        const more = others.length > 60 ? [element("p", `and ${others.length - 60} more keys`)] : [];
        return [title, table, ...more];
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

    // The arrows of a cause: from what was read to what made it untrue, from there to what was done all the same. Fainter ones lead
    // from a step to those whose order to it matters.
    function draw(finding) {
        const drawn = finding.diagram.querySelector(".arrows");
        const cause = finding.data.cause;
        const causes = cause ? [[cause.read, cause.written], [cause.written, cause.overwritten]] : [];
        const isCause = ([from, to]) => causes.some((one) => one[0] === from && one[1] === to);
        const depends = finding.data.steps.flatMap((step, to) => (step.after || []).map((from) => [from, to]));
        const lines = [
            ...depends.filter((pair) => !isCause(pair)).map((pair) => [...pair, "depends"]),
            ...causes.map((pair) => [...pair, ""]),
        ];
        drawn.replaceChildren();
        // Its old size must not keep the diagram from shrinking.
        drawn.setAttribute("width", 0);
        drawn.setAttribute("height", 0);
        if (lines.length === 0) return;
        drawn.classList.toggle("crowded", depends.length > 40);
        // All is measured before anything is drawn, or else each arrow would have the page laid out anew.
        const places = measure(finding);
        const size = [finding.diagram.scrollWidth, finding.diagram.scrollHeight];
        const made = lines.flatMap(([from, to, className]) => {
            const ends = [places.get(from), places.get(to)];
            return ends[0] && ends[1] ? arrow(drawn, ends, places.gap, `${from} ${to}`, className) : [];
        });
        drawn.setAttribute("width", size[0]);
        drawn.setAttribute("height", size[1]);
        drawn.append(...made);
        point(finding);
    }

    // The arrows of the current step stand out.
    function point(finding) {
        const now = current && current.finding === finding ? finding.steps[current.index].dataset.step : null;
        for (const path of finding.diagram.querySelectorAll(".arrows .depends")) {
            path.classList.toggle("near", path.dataset.ends.split(" ").includes(now));
        }
    }

    function measure(finding) {
        const { diagram } = finding;
        const origin = diagram.getBoundingClientRect();
        const places = new Map();
        for (const node of finding.steps) {
            const { left, top, width, height } = node.getBoundingClientRect();
            const x = left - origin.left + diagram.scrollLeft - diagram.clientLeft;
            const y = top - origin.top + diagram.scrollTop - diagram.clientTop;
            const all = node.closest(".event") !== null;
            places.set(Number(node.dataset.step), { left: x, right: x + width, top: y, bottom: y + height, middle: y + height / 2, all });
        }
        // Arrows run between the lanes, where there is no text.
        places.gap = finding.steps.length ? parseFloat(getComputedStyle(finding.steps[0].closest("td")).paddingRight) : 0;
        return places;
    }

    function arrow(drawn, [from, to], gap, ends, className) {
        const line = route(from, to, gap);
        const path = document.createElementNS(drawn.namespaceURI, "path");
        path.setAttribute("class", className);
        path.setAttribute("d", `M ${line.from} C ${line.bends[0]} ${line.bends[1]} ${line.to}`);
        const head = document.createElementNS(drawn.namespaceURI, "path");
        head.setAttribute("class", `head ${className}`);
        head.setAttribute("d", "M 0 0 L -8 -5 L -8 5 Z");
        head.setAttribute("transform", `translate(${line.to}) rotate(${line.turn})`);
        path.dataset.ends = head.dataset.ends = ends;
        return [path, head];
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
