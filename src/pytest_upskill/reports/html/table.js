// The table of cases: sorted and filtered as the address says, opened by click and by link.

function columnsOf(tests) {
  const several = (key) => new Set(tests.map((test) => test[key])).size > 1;
  const ref = tests.find((test) => test.against)?.against;
  const has = (arm) => tests.some((test) => trialsOf(test, arm).length);
  return [
    { name: "case", by: (test) => test.name, cell: caseCell },
    several("skill") && { name: "skill", by: (test) => test.skill, cell: (test) => named(test.skill) },
    several("model") && { name: "model", by: (test) => test.model, cell: (test) => named(test.model) },
    has("baseline") && { name: "without", by: (test) => test.without, cell: pips("baseline") },
    has("previous") && { name: `at ${ref}`, by: (test) => test.previous, cell: pips("previous") },
    has("again") && { name: "again", by: (test) => test.previous, cell: pips("again") },
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
  const open = button("", { class: "open", "aria-expanded": "false" }, () => toggle(test));
  open.append(...breakable(test.name));
  const tags = test.tags.length ? el("small", {}, test.tags.join(", ")) : null;
  return el("span", { class: "name" }, open, tags);
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

const NARROWEST = 650; // pixels for columns
const MOST_LISTED = 300;
let most = MOST_LISTED;
let ordered = tests;
const columns = columnsOf(tests);
const heads = columns.map((column) => el("th",
  { scope: "col", role: "columnheader", class: column.kind, "aria-sort": "none" },
  button(column.name, {}, () => sortBy(column))));
const table = el("table", { class: "cases", role: "table", "aria-label": "Cases" },
  el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)));

/** A browser takes long for thousands of rows, so only the first are made, and what is linked to. */
function refresh(now) {
  const states = pressed();
  const found = ordered.filter((test) => fits(test, states, now));
  const listed = found.filter((test, index) => index < most || test.id === now.at);
  const bodies = listed.map((test) => (test.body ??= bodyOf(test)));
  const wanted = new Set(bodies);
  for (const body of [...table.tBodies]) if (!wanted.has(body)) body.remove();
  if (bodies.some((body, index) => table.tBodies[index] !== body)) table.append(...bodies);
  more.hidden = listed.length === found.length;
  more.textContent = `Show all ${number(found.length)}; these are the first ${number(MOST_LISTED)}`;
  showFilters(now, found.length);
  if (!table.classList.contains("cards")) requestAnimationFrame(fitWidth);
}

/** Where the columns have no room side by side, each row becomes a card. */
function fitWidth() {
  const room = table.parentNode.clientWidth;
  table.classList.remove("cards");
  table.classList.toggle("cards", room < NARROWEST || table.offsetWidth > room);
}

function sortBy(column) {
  go({ sort: address().sort === column.name ? `-${column.name}` : column.name });
}

function sort(by = "") {
  const down = by.startsWith("-");
  const column = columns.find((one) => one.name === by.slice(down ? 1 : 0));
  const sign = down ? -1 : 1;
  const words = new Intl.Collator("en", { numeric: true });
  const order = (one, two) => {
    const [a, b] = column ? [column.by(one), column.by(two)] : [0, 0];
    if (a == null || b == null) return (a == null) - (b == null) || one.order - two.order;
    return sign * (typeof a === "string" ? words.compare(a, b) : a - b) || one.order - two.order;
  };
  ordered = tests.toSorted(order);
  heads.forEach((head, index) => head.setAttribute("aria-sort",
    columns[index] !== column ? "none" : down ? "descending" : "ascending"));
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
  if (open) go({ at: test.id });
  else if (address().at === test.id) go({ at: "cases" });
  unfold(test, open);
}

function unfold(test, open) {
  test.body.querySelector(".open").setAttribute("aria-expanded", open);
  if (!open) {
    test.body.rows[1]?.remove();
  } else if (test.body.rows.length === 1) {
    const cell = el("td", { colspan: columns.length, role: "cell" }, openedCase(test));
    test.body.append(el("tr", { class: "detail", role: "row" }, cell));
  }
}

/** A link to a case overrides filters; one that is gone back from is closed. */
function openLinked(now, before) {
  const test = byId.get(now.at);
  const left = byId.get(before.at);
  if (left?.body && left !== test) unfold(left, false);
  if (!test) return;
  if (!fits(test, pressed(), now)) reset(true);
  unfold(test, true);
  test.body.scrollIntoView({ block: "start" });
  test.body.querySelector(".open").focus({ preventScroll: true });
}

const byId = new Map(tests.map((test) => [test.id, test]));
const more = button("", { class: "more", hidden: true }, () => {
  most = Infinity;
  refresh(address());
});
document.getElementById("table").replaceChildren(filterControls(), table, more);
addEventListener("resize", () => requestAnimationFrame(fitWidth));
follow((now, before, moved) => {
  if (now.sort !== before.sort) sort(now.sort);
  if (moved || now.sort !== before.sort || FILTERS.some((key) => now[key] !== before[key])) refresh(now);
  if (moved && now.at !== before.at) openLinked(now, before);
});
