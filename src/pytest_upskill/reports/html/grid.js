// A grid for each skill: a row for each case, the worst first, and a column for each model.
// The colour is of the lift, or of the pass rate if there is no baseline; the number says the same.

const MOST_ROWS = 25; // more are shown on demand
const FEW_MODELS = 6; // more leave room for one line in a cell

function gridOf(skill, own) {
  const models = [...new Set(own.map((test) => test.model))];
  const compared = own.some((test) => test.lift != null);
  const rows = [...Map.groupBy(own, (test) => test.name)]
    .map(([name, found]) => gridRow(name, found, compared))
    .sort((one, two) => one.rank.map((value, n) => value - two.rank[n]).find(Boolean) ?? 0);
  const dense = models.length > FEW_MODELS;
  const brief = dense || data.skills[skill]?.score === "checks"; // whose rates are not what is compared
  const body = el("tbody", {});
  const draw = (count) => body.replaceChildren(...rows.slice(0, count)
    .map((row) => el("tr", {}, el("th", { scope: "row" }, gridLink(row.worst, "name", ...breakable(row.name))),
      ...models.map((model) => el("td", {}, gridCell(row.tests.get(model), compared, brief))))));
  draw(MOST_ROWS);
  const what = compared ? "Lift" : "Pass rate";
  const head = el("tr", {}, el("th", { scope: "col" }, "case"),
    ...models.map((model) => el("th", { scope: "col" }, named(model))));
  const grid = el("table", { class: `by-model${dense ? " dense" : ""}`, role: "grid",
    "aria-label": `${what} of ${skill} by case and model`, keydown: moveInGrid, focusin: rove },
  el("thead", {}, head), body);
  grid.querySelector("tbody a")?.setAttribute("tabindex", "0");
  const box = el("div", { class: "case-grid" }, el("h3", {}, `${what} by case and model, worst first`),
    el("div", { class: "grid-scroll" }, grid));
  if (rows.length > MOST_ROWS) {
    const all = `Show all ${number(rows.length)} cases`;
    box.append(button(all, { class: "more", "aria-expanded": "false" }, (event) => {
      const open = event.target.getAttribute("aria-expanded") !== "true";
      draw(open ? rows.length : MOST_ROWS);
      grid.querySelector("tbody a").setAttribute("tabindex", "0");
      event.target.setAttribute("aria-expanded", open);
      event.target.textContent = open ? `Show the ${MOST_ROWS} worst cases` : all;
    }));
  }
  const note = compared ? `in points${brief ? "" : ", below it the pass rates without → with the skill"}` : "in %";
  const marks = [["✗", "failed"], ["!", "errored"]].filter(([, state]) => own.some((test) => test.states.includes(state)));
  const words = { failed: "the test failed", errored: "an answer is missing" };
  box.append(el("p", { class: "note" }, [`${what} ${note}`,
    ...marks.map(([mark, state]) => `${mark} ${words[state]}`)].join(" · ") + "."));
  return box;
}

/** Ranked by the worst model, then by how much passes with the skill; what did not run is last. */
function gridRow(name, found, compared) {
  const known = found.filter((test) => test.states[0] !== "not run");
  const value = (test) => (compared ? test.lift : test.with) ?? 0;
  const worst = known.toSorted((one, two) => value(one) - value(two))[0] ?? found[0];
  const passing = known.reduce((sum, test) => sum + (test.with ?? 0), 0) / (known.length || 1);
  return {
    name, worst, tests: new Map(found.map((test) => [test.model, test])),
    rank: [known.length ? 0 : 1, known.length ? value(worst) : 0, passing, worst.order],
  };
}

function gridLink(test, kind, ...inside) {
  return el("a", { href: `#${test.id}`, class: kind, tabindex: "-1" }, ...inside);
}

function gridCell(test, compared, brief) {
  if (!test) return "";
  if (test.states[0] === "not run") return gridLink(test, "none", "not run");
  const value = compared ? test.lift : test.with;
  const marks = [test.states.includes("failed") && "✗", test.states.includes("errored") && "!"]
    .filter(Boolean).join("");
  if (value == null) return gridLink(test, "none", test.states.includes("errored") ? "error" : "–");
  const points = Math.round(100 * value);
  const shown = compared ? signed(points) : `${points}`;
  const rates = compared && !brief && test.without != null && test.with != null
    ? `${Math.round(100 * test.without)}→${Math.round(100 * test.with)}` : "";
  return gridLink(test, shade(compared ? points : 2 * points - 100), shown,
    marks && el("b", {}, ` ${marks}`), rates && el("small", {}, rates));
}

function signed(points) {
  return points > 0 ? `+${points}` : `${points}`.replace("-", "−");
}

function shade(points) {
  const step = Math.min(3, Math.ceil(Math.abs(points) / 33.4));
  return step === 0 ? "zero" : `${points > 0 ? "up" : "down"}-${step}`;
}

// One stop for Tab, and arrows within.

function rove(event) {
  const link = event.target.closest("a");
  for (const one of event.currentTarget.querySelectorAll("a[tabindex='0']")) one.tabIndex = -1;
  if (link) link.tabIndex = 0;
}

function moveInGrid(event) {
  const cell = event.target.closest("td, th");
  if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
  const row = cell.parentNode;
  const across = { ArrowLeft: -1, ArrowRight: 1, Home: -cell.cellIndex, End: row.cells.length }[event.key];
  const rows = [...row.parentNode.rows];
  const to = across != null
    ? nearest([...row.cells], cell.cellIndex, across)
    : rows[rows.indexOf(row) + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] ?? NaN)]?.cells[cell.cellIndex];
  const known = across != null || event.key === "ArrowUp" || event.key === "ArrowDown";
  if (known) event.preventDefault();
  to?.querySelector("a")?.focus();
}

/** The next cell in a direction that has a link. */
function nearest(cells, from, by) {
  const ahead = by < 0 ? cells.slice(0, from).reverse() : cells.slice(from + 1);
  const linked = ahead.filter((one) => one.querySelector("a"));
  return Math.abs(by) === 1 ? linked[0] : linked.at(-1);
}

// Queries have no lift.
for (const [skill, own] of Map.groupBy(tests.filter((test) => !test.is_trigger), (test) => test.skill)) {
  const section = document.getElementById(data.skills[skill]?.id);
  section?.append(gridOf(skill, own));
}
