// The table of cases: sorted, filtered, opened by click, by key and by link.

const STATES = ["failed", "regressed", "worse", "errored", "flaky", "no signal", "not run"];

async function unpacked() {
  const letters = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function mean(values) {
  const known = values.filter((value) => value != null);
  return known.length && known.length === values.length
    ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function testsOf(data) {
  return data.tests.map((test, order) => {
    const about = data.cases[test.case];
    const [without, previous, now] = test.rates ?? [null, null, null];
    const cost = (arm) => {
      const answered = trialsOf(test, arm).filter((trial) => trial.outcome !== "errored");
      const one = mean(answered.map((trial) => trial.cost));
      return one == null ? null : 1000 * one;
    };
    return {
      ...about, ...test, order, without, previous, with: now,
      name: about.name, against: data.against[about.skill],
      before: test.tokens?.[0], after: test.tokens?.[1],
      costs: [cost("baseline"), cost("skill")],
    };
  });
}

function textOf(test) {
  test.text ??= [test.name, test.question?.[0], ...test.trials.map((trial) => trial.answer?.[0])]
    .join("\n").toLowerCase();
  return test.text;
}

function columnsOf(tests) {
  const several = (key) => new Set(tests.map((test) => test[key])).size > 1;
  const ref = tests.find((test) => test.against)?.against;
  const has = (arm) => tests.some((test) => trialsOf(test, arm).length);
  return [
    { name: "case", by: (test) => test.name, cell: caseCell },
    several("skill") && { name: "skill", by: (test) => test.skill, cell: (test) => test.skill },
    several("model") && { name: "model", by: (test) => test.model, cell: (test) => test.model },
    has("baseline") && { name: "without", by: (test) => test.without, cell: pips("baseline") },
    has("previous") && { name: `at ${ref}`, by: (test) => test.previous, cell: pips("previous") },
    { name: "with", by: (test) => test.with, cell: pips("skill") },
    has("baseline") && { name: "lift", by: (test) => test.lift, cell: liftCell, kind: "num" },
    tests.some((test) => test.trials.some((trial) => trial.checks.length > 1)) && {
      name: "checks", by: (test) => checksOf(test, "skill")?.share, kind: "num",
      cell: (test) => arrow(["baseline", "skill"].map((arm) => checksOf(test, arm)), (of) => of.text) },
    { name: "tokens", by: (test) => test.after, kind: "num",
      cell: (test) => arrow([test.before, test.after], number) },
    tests.some((test) => test.costs[0] || test.costs[1]) && { name: "$/1000", kind: "num",
      by: (test) => test.costs[1],
      cell: (test) => arrow(test.costs, dollars) },
    { name: "state", by: (test) => STATES.findIndex((state) => test.states.includes(state)) + 1 || null,
      cell: (test) => el("span", { class: "states" }, ...test.states.map(stateWord)) },
  ].filter(Boolean);
}

function caseCell(test) {
  const open = button(test.name, { class: "open", "aria-expanded": "false" }, () => toggle(test));
  const tags = test.tags.length ? el("small", {}, test.tags.join(", ")) : null;
  return el("span", {}, open, tags);
}

function pips(arm) {
  return (test) => {
    const outcomes = trialsOf(test, arm).map((trial) => trial.outcome);
    if (!outcomes.length) return "–";
    const passed = outcomes.filter((outcome) => outcome === "passed").length;
    const title = `${passed} of ${outcomes.length} passed`;
    if (outcomes.length > 6) return el("span", { title }, `${passed}/${outcomes.length}`);
    return el("span", { class: "pips", role: "img", "aria-label": title, title },
      ...outcomes.map((outcome) => el("i", { class: outcome }, MARKS[outcome])));
  };
}

/** How many checks of an answer pass, on average. */
function checksOf(test, arm) {
  const graded = trialsOf(test, arm).filter((trial) => trial.checks.length);
  if (!graded.length) return null;
  const passed = mean(graded.map((trial) => trial.checks.filter(([mark]) => mark === "ok").length));
  const all = mean(graded.map((trial) => trial.checks.length));
  const short = (value) => value.toFixed(1).replace(".0", "");
  return { share: passed / all, text: `${short(passed)}/${short(all)}` };
}

function liftCell(test) {
  if (test.lift == null) return "–";
  const points = Math.round(100 * test.lift);
  const kind = points > 0 ? "up" : points < 0 ? "down" : "flat";
  return el("span", { class: kind }, points > 0 ? `+${points}` : `${points}`.replace("-", "−"));
}

function arrow(values, text) {
  return values.filter((value) => value != null).map(text).join(" → ") || "–";
}

function stateWord(state) {
  return el("span", { class: `state ${state.replace(" ", "-")}` }, state);
}

const data = await unpacked().catch((error) => {
  document.getElementById("table").replaceChildren("This browser is too old to unpack the cases.");
  throw error;
});
const tests = testsOf(data);
const columns = columnsOf(tests);
const filters = { states: new Set(), model: "", skill: "", tag: "", text: "" };
const sorting = { column: null, down: false };
const shownCount = el("p", { role: "status", class: "count" });
const heads = columns.map((column) => el("th",
  { scope: "col", role: "columnheader", class: column.kind, "aria-sort": "none" },
  button(column.name, {}, () => sortBy(column))));
const table = el("table", { class: "cases", role: "table", "aria-label": "Cases" },
  el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)));
const search = el("input", {
  type: "search",
  placeholder: "Search text  ( / )",
  "aria-label": "Text in case, question or answers",
  input: (event) => filter("text", event.target.value.toLowerCase()),
});
const stateButtons = STATES.map(stateButton).filter(Boolean);
const selects = [select("model"), select("skill"), select("tag")].filter(Boolean);
const clear = button("Clear", { class: "clear", hidden: true }, () => reset());

function stateButton(state) {
  const count = tests.filter((test) => test.states.includes(state)).length;
  if (state === "not run" && count === 0) return null;
  const made = button(`${state} `, { "aria-pressed": "false", disabled: count === 0, "data-state": state },
    () => toggleState(state));
  made.append(el("b", {}, number(count)));
  return made;
}

function select(key) {
  const values = [...new Set(tests.flatMap((test) => (key === "tag" ? test.tags : [test[key]])))].sort();
  if (values.length < (key === "tag" ? 1 : 2)) return null;
  const choose = (event) => filter(key, event.target.value);
  return el("select", { "aria-label": key, "data-key": key, change: choose },
    el("option", { value: "" }, `every ${key}`),
    ...values.map((value) => el("option", { value }, value)));
}

function filter(key, value) {
  filters[key] = value;
  refresh();
}

function toggleState(state) {
  if (!filters.states.delete(state)) filters.states.add(state);
  refresh();
}

function reset() {
  Object.assign(filters, { states: new Set(), model: "", skill: "", tag: "", text: "" });
  for (const control of [search, ...selects]) control.value = "";
  refresh();
}

function fits(test) {
  const { states, model, skill, tag, text } = filters;
  return (states.size === 0 || test.states.some((state) => states.has(state)))
    && (!model || test.model === model) && (!skill || test.skill === skill)
    && (!tag || test.tags.includes(tag)) && (!text || textOf(test).includes(text));
}

function refresh() {
  let shown = 0;
  for (const test of tests) {
    test.body.hidden = !fits(test);
    shown += test.body.hidden ? 0 : 1;
  }
  for (const one of stateButtons) {
    one.setAttribute("aria-pressed", filters.states.has(one.dataset.state));
  }
  clear.hidden = shown === tests.length;
  shownCount.textContent = `${number(shown)} of ${number(tests.length)} shown`;
}

function sortBy(column) {
  sorting.down = sorting.column === column && !sorting.down;
  sorting.column = column;
  const sign = sorting.down ? -1 : 1;
  const words = new Intl.Collator("en", { numeric: true });
  const order = (one, two) => {
    const [a, b] = [column.by(one), column.by(two)];
    if (a == null || b == null) return (a == null) - (b == null) || one.order - two.order;
    return sign * (typeof a === "string" ? words.compare(a, b) : a - b) || one.order - two.order;
  };
  table.append(...tests.toSorted(order).map((test) => test.body));
  heads.forEach((head, index) => head.setAttribute("aria-sort",
    columns[index] !== column ? "none" : sorting.down ? "descending" : "ascending"));
}

function bodyOf(test) {
  const cells = columns.map((column) => el("td",
    { role: "cell", class: column.kind, "data-name": column.name }, column.cell(test)));
  const row = el("tr", { id: test.id, role: "row", click: (event) => {
    if (!event.target.closest("button, a") && !getSelection().toString()) toggle(test);
  } }, ...cells);
  return el("tbody", { role: "rowgroup" }, row);
}

function toggle(test, open = test.body.rows.length === 1) {
  test.body.querySelector(".open").setAttribute("aria-expanded", open);
  if (open && test.body.rows.length === 1) {
    const cell = el("td", { colspan: columns.length, role: "cell" }, openedCase(test));
    test.body.append(el("tr", { class: "detail", role: "row" }, cell));
    if (location.hash !== `#${test.id}`) history.pushState(null, "", `#${test.id}`);
  } else if (!open) {
    test.body.rows[1]?.remove();
  }
}

/** A link to a case overrides filters. */
function openLinked() {
  const test = tests.find((one) => `#${one.id}` === location.hash);
  if (!test) return;
  if (test.body.hidden) reset();
  toggle(test, true);
  test.body.scrollIntoView({ block: "start" });
  test.body.querySelector(".open").focus({ preventScroll: true });
}

for (const test of tests) {
  test.body = bodyOf(test);
  table.append(test.body);
}
document.getElementById("table").replaceChildren(
  el("div", { class: "filters", role: "search" },
    el("div", {}, search, ...selects),
    el("div", {}, group("State", stateButtons), clear, shownCount)),
  table,
);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    search.focus();
  }
});
addEventListener("hashchange", openLinked);
addEventListener("popstate", openLinked);
refresh();
openLinked();
document.documentElement.dataset.ready = "yes";
