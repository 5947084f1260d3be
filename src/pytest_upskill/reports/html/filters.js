// Which cases the table shows: controls that write to the address, and what fits it.

const STATES = ["failed", "regressed", "worse", "errored", "flaky", "no signal", "not run"];
const OWN_STATES = ["failed", "errored", "flaky"]; // which each arm has by itself
const CHANGES = {
  regressed: () => "worse than accepted",
  improved: () => "better than accepted",
  new: () => "not accepted yet",
  worse: (ref) => `worse than at ${ref}`,
  better: (ref) => `better than at ${ref}`,
  fewer: () => "passes less than in the run before",
  more: () => "passes more than in the run before",
};
const SINCE = { broke: ["fewer"], fell: ["fewer"], fixed: ["more"], rose: ["more"] };
const REF = tests.find((test) => test.against)?.against ?? "the git ref";
// By key of the address: what a test has to offer, and what a value is called.
const CHOICES = {
  model: { of: (test) => [test.model] },
  skill: { of: (test) => [test.skill] },
  tag: { of: (test) => test.tags, least: 1 },
  verdict: { of: (test) => [verdictOf(test)], every: "any verdict" },
  outcome: { of: (test) => [test.outcome], every: "any outcome" },
  changed: { of: (test) => [...test.changes, ...(SINCE[test.change] ?? [])], least: 1, every: "changed or not",
    name: (value) => CHANGES[value](REF) },
};
const FILTERS = ["state", "arm", "q", ...Object.keys(CHOICES)];

const search = el("input", {
  type: "search",
  placeholder: "Search text  ( / )",
  "aria-label": "Text in case, question or answers",
  input: (event) => go({ q: event.target.value }, true),
});
const selects = [...Object.keys(CHOICES).map(select), armSelect()].filter(Boolean);
const stateButtons = STATES.map(stateButton).filter(Boolean);
const clear = button("Clear", { class: "clear", hidden: true }, () => reset(false));
const shownCount = el("p", { role: "status", class: "count" });

function filterControls() {
  return el("div", { class: "filters", role: "search", "aria-label": "Cases" },
    el("div", {}, search, ...selects.filter((one) => one.dataset.key !== "arm")),
    el("div", {}, group("State", stateButtons), ...selects.filter((one) => one.dataset.key === "arm"),
      clear, shownCount));
}

function verdictOf(test) {
  const known = Object.hasOwn(data.verdicts, test.skill) ? data.verdicts[test.skill] : {};
  return Object.hasOwn(known, test.model) ? known[test.model] : "none";
}

function textOf(test) {
  test.text ??= [test.name, test.question?.[0], ...test.trials.map((trial) => trial.answer?.[0])]
    .join("\n").toLowerCase();
  return test.text;
}

function select(key) {
  const { of, least = 2, every = `every ${key}`, name = (value) => value } = CHOICES[key];
  const values = [...new Set(tests.flatMap(of))].sort();
  if (values.length < least) return null;
  return options(key, [["", every], ...values.map((value) => [value, name(value)])]);
}

/** Whose outcome the states are of. */
function armSelect() {
  const arms = ["skill", "baseline", "previous", "again", "trace"]
    .filter((arm) => tests.some((test) => Object.hasOwn(test.of_arms, arm)));
  if (arms.length < 2) return null;
  return options("arm", arms.map((arm) => [arm === "skill" ? "" : arm, armName(arm, REF)]));
}

function options(key, named) {
  return el("select", { "aria-label": key === "arm" ? "State of which arm" : key, "data-key": key,
    change: (event) => go({ [key]: event.target.value }) },
  ...named.map(([value, name]) => el("option", { value }, name)));
}

function stateButton(state) {
  if (state === "not run" && !tests.some((test) => test.states.includes(state))) return null;
  return button(`${state} `, { "data-state": state }, () => toggleState(state));
}

function toggleState(state) {
  const states = pressed();
  if (!states.delete(state)) states.add(state);
  go({ state: STATES.filter((one) => states.has(one)).join(",") });
}

function pressed() {
  return new Set(address().state?.split(","));
}

/** Of another arm than that with the skill: its own, and those that compare both. */
function statesOf(test, arm) {
  if (!arm || arm === "skill") return test.states;
  const own = Object.hasOwn(test.of_arms, arm) ? test.of_arms[arm] : [];
  return [...own, ...test.states.filter((state) => !OWN_STATES.includes(state))];
}

function reset(replace) {
  go(Object.fromEntries(FILTERS.map((key) => [key, null])), replace);
}

function fits(test, states, now) {
  return (states.size === 0 || statesOf(test, now.arm).some((state) => states.has(state)))
    && Object.entries(CHOICES).every(([key, { of }]) => !now[key] || of(test).includes(now[key]))
    && (!now.q || textOf(test).includes(now.q.toLowerCase()));
}

function showFilters(now, shown) {
  const states = pressed();
  const counts = new Map();
  for (const test of tests) {
    for (const state of statesOf(test, now.arm)) counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  for (const one of stateButtons) {
    const { state } = one.dataset;
    one.setAttribute("aria-pressed", states.has(state));
    one.disabled = !counts.get(state) && !states.has(state);
    one.replaceChildren(`${state} `, el("b", {}, number(counts.get(state) ?? 0)));
  }
  if (search.value !== (now.q ?? "")) search.value = now.q ?? "";
  for (const one of selects) one.value = now[one.dataset.key] ?? "";
  clear.hidden = FILTERS.every((key) => !now[key]);
  shownCount.textContent = `${number(shown)} of ${number(tests.length)} shown`;
}
