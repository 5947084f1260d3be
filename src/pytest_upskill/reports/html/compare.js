// A case in the run before, beside what it is now.

const CHANGE_WORDS = {
  broke: "passed before, and fails now",
  fixed: "failed before, and passes now",
  fell: "passes fewer runs than before",
  rose: "passes more runs than before",
  edited: "question or checks were edited, so the results can't be compared",
  new: "not in the run before",
  checks: "passes as often as before, but other checks do",
  answer: "passes as often as before; only the answer changed",
};

CASE_PARTS.splice(CASE_PARTS.indexOf(answers), 0, sinceBefore);
const OF_SINCE = ["then", "of", "since"]; // in the address
const sinceViews = new Map(); // by the id of the test
OF_CASE.push(...OF_SINCE);
follow((now, before) => {
  const changed = OF_SINCE.some((key) => now[key] !== before[key]);
  if (changed && now.at === before.at) sinceViews.get(now.at)?.();
});

function sinceBefore(test) {
  if (!test.change) return null;
  const box = el("section", { class: "since" }, el("h3", {}, "Since the run before"),
    el("p", { class: "facts" }, changeLine(test)));
  const trials = test.was.trials;
  if (trials?.length) {
    const body = el("div", { class: "runs" });
    const draw = () => body.replaceChildren(...thenAndNow(test, body));
    sinceViews.set(test.id, draw);
    draw();
    box.append(body);
  } else if (trials === null && test.change !== "new") {
    box.append(el("p", { class: "note" },
      "To keep this file small, the earlier answers of this case are left out."));
  }
  return box;
}

function changeLine(test) {
  const { passed, now, shown } = test.was;
  const share = (count) => (count ? `${count[0]}/${count[1]}` : "–");
  const counts = passed && now ? `passed ${share(passed)} → ${share(now)}` : null;
  const judged = ["broke", "fell"].includes(test.change) ? "worse" : "better";
  const differs = !["edited", "new", "answer"].includes(test.change);
  return [
    CHANGE_WORDS[test.change],
    test.change === "edited" ? null : counts,
    differs && (shown ? judged : "could be chance"),
  ].filter(Boolean).join(" · ");
}

/** What is shown of the earlier run: as the address says, if it is of this case. */
function shownThen(test) {
  const said = address().at === test.id ? address() : {};
  const trials = test.was.trials;
  const arms = [...new Set(trials.map((trial) => trial.arm))];
  const arm = arms.includes(said.of) ? said.of : arms.includes("skill") ? "skill" : arms[0];
  const then = trials.filter((trial) => trial.arm === arm);
  const now = trialsOf(test, arm);
  const runs = [...new Set([...then, ...now].map((trial) => trial.run))].sort((a, b) => a - b);
  const first = (then.find((trial) => !trial.same) ?? then[0]).run;
  const run = runs.includes(Number(said.then)) ? Number(said.then) : first;
  return { arms, arm, then, now, runs, run, diff: said.since === "diff" };
}

function thenAndNow(test, body) {
  const { arms, arm, then, now, runs, run, diff } = shownThen(test);
  const set = (changes, selector) => () => {
    if (address().at !== test.id) go({ at: test.id });
    go(changes);
    body.querySelector(selector)?.focus();
  };
  const row = el("div", { class: "controls" });
  if (runs.length > 1) {
    row.append(group("Run", runs.map((one) => {
      const marks = [then, now].map((some) => MARKS[some.find((trial) => trial.run === one)?.outcome] ?? "–");
      return button(`${one} ${marks.join("→")}`, { "aria-pressed": `${run === one}`, "data-then": one },
        set({ then: one }, `[data-then="${one}"]`));
    })));
  }
  if (arms.length > 1) {
    row.append(group("Answers", arms.map((one) =>
      button(armName(one, test.against), { "aria-pressed": `${arm === one}`, "data-of": one },
        set({ of: one, then: null }, `[data-of="${one}"]`)))));
  }
  row.append(group("Show", ["answers", "diff"].map((label) =>
    button(label, { "aria-pressed": `${diff === (label === "diff")}`, "data-since": label },
      set({ since: label === "diff" ? label : null }, `[data-since="${label}"]`)))));
  const before = then.find((trial) => trial.run === run);
  const after = now.find((trial) => trial.run === run);
  const old = before?.same ? after?.answer : before?.answer;
  const pair = el("div", { class: "pair" },
    sideOf("then", before, old, !diff), sideOf("now", after, after?.answer, !diff));
  return [row, pair, ...(diff ? [diffOf(old?.[0] ?? "", after?.answer?.[0] ?? "")] : [])];
}

function sideOf(title, trial, answer, whole) {
  const head = el("h3", {}, title);
  if (!trial) {
    return el("section", { class: "card" }, head, el("p", { class: "note" }, "not asked"));
  }
  head.append(" ", el("span", { class: `outcome-word ${trial.outcome}` },
    `${MARKS[trial.outcome]} ${trial.outcome}`));
  const checks = trial.checks.map(([mark, name, reason]) => el("li", { class: mark.toLowerCase() },
    el("b", {}, mark), el("span", {}, el("code", {}, name), " ", reason)));
  return el("section", { class: "card" }, head,
    trial.error ? el("p", { class: "error" }, trial.error) : null,
    checks.length ? el("ul", { class: "checks" }, ...checks) : null,
    trial.same ? el("p", { class: "note" }, "The same answer as now.") : null,
    whole && !trial.same ? longText(answer, "no answer") : null);
}
