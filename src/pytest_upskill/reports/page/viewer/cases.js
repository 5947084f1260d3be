// The table of cases × models, with filters and search. Filters are in the address; those of one
// kind widen, those of several kinds narrow what is shown.

// How to filter: by name, the values of a test. What regressed also failed.
const FILTERS = {
  signal: ({ signal }) => (signal ? [signal] : []),
  outcome: ({ outcome }) => (outcome === "regressed" ? ["failed", "regressed"] : [outcome]),
  skill: (test) => [test.skill],
  model: (test) => [test.label],
  tag: (test) => test.tags,
  change: (test) => (test.change ? [test.change.kind] : []),
};
// Those with chips that count; others are set by links.
const isFiltered = (address) => Boolean(address.get("q"))
  || Object.keys(FILTERS).some((name) => name !== "model" && address.get(name));

// What a search looks at, made when it is first needed.
const haystacks = new Map();
function haystackOf(test) {
  if (!haystacks.has(test.id)) {
    const texts = [test.nodeid, test.question, ...test.tags];
    for (const record of test.records) {
      texts.push(record.output ?? "", record.error ?? "");
      for (const check of record.checks) texts.push(check.reason);
    }
    haystacks.set(test.id, texts.join("\n").toLowerCase());
  }
  return haystacks.get(test.id);
}

// Whether a test is shown; `except` is a kind of filter that is left out, to count its values.
function matcher(address, except = null) {
  const wanted = Object.entries(FILTERS).map(([name, values]) => [
    values, name === except ? [] : address.getAll(name),
  ]).filter(([, chosen]) => chosen.length);
  const words = (address.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return (test) => wanted.every(([values, chosen]) => values(test).some((v) => chosen.includes(v)))
    && (!words.length || words.every((word) => haystackOf(test).includes(word)));
}

// A row is a case with its tests by model; `matching` are those that the filters want.
const caseRows = [...testsOfCase.values()].map((own, number) => ({
  id: own[0].id, number, tests: own, byLabel: new Map(own.map((test) => [test.label, test])),
}));

function shownRows(address) {
  const matches = matcher(address);
  const found = caseRows
    .map((row) => ({ ...row, matching: row.tests.filter(matches) }))
    .filter((row) => row.matching.length);
  for (const row of found) {
    row.worst = row.matching.reduce((a, b) => (severity(b) < severity(a) ? b : a));
  }
  return found.sort((a, b) => severity(a.worst) - severity(b.worst) || a.number - b.number);
}

// The tests before and after one that is open, in the order of the table.
function neighboursOf(test, address) {
  const rows = shownRows(address);
  const at = rows.findIndex((row) => row.tests.includes(test));
  const idOf = (row) => {
    if (!row) return null;
    return (row.matching.find((other) => other.label === test.label) ?? row.worst).id;
  };
  return { previous: idOf(rows[at - 1]), next: idOf(rows[at + 1]), at, of: rows.length };
}

let lastOpened = null; // the row to come back to

// Cases({ address, children }): the bar of filters, what stands between, and the table.
function Cases({ address, children }) {
  const shown = useMemo(() => shownRows(address), [String(address)]);
  const [current, setCurrent] = useState(lastOpened);
  const section = useRef(null);
  const open = (row) => go({ case: row.worst.id });
  const move = (step) => () => {
    const at = shown.findIndex((row) => row.id === current);
    const row = shown[at < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, at + step))];
    if (!row) return;
    setCurrent(row.id);
    scrollToRow(section.current, shown.indexOf(row));
  };
  useKeys({
    j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1),
    Enter: () => { const row = shown.find(({ id }) => id === current); if (row) open(row); },
    "/": () => section.current.querySelector("input[type=search]").focus(),
    Escape: () => {
      if (document.activeElement?.matches("input")) document.activeElement.blur();
      else go({ ...Object.fromEntries(Object.keys(FILTERS).map((name) => [name, null])), q: null });
    },
  });
  useLayoutEffect(() => {
    const at = shown.findIndex((row) => row.id === lastOpened);
    if (at >= 0) scrollToRow(section.current, at);
  }, []);
  const models = address.getAll("model");
  const shownLabels = [...new Set(shown.flatMap((row) => row.tests.map(({ label }) => label)))]
    .filter((label) => !models.length || models.includes(label));
  return html`<section class="cases" ref=${section} aria-label="Cases">
    <${FilterBar} address=${address} rows=${shown} />
    ${children}
    ${shown.length ? html`<${Table} label="Cases" rows=${shown} columns=${caseColumns(shownLabels)} current=${current}
      least=${leastWidth(shownLabels.length)}
      keyOf=${(row) => row.id} hrefOf=${(row) => href({ case: row.worst.id })} />`
      : html`<p class="nothing">No test matches. <a href=${href({}, true)}>Show all</a></p>`}
  </section>`;
}

const FEW_MODELS = 4; // that leave room for the reasons

// As tables.css has it.
function leastWidth(models) {
  if (innerWidth <= 640) return 130 + 58 * models;
  return (models > FEW_MODELS ? 230 : 420) + (innerWidth <= 1100 ? 90 : 108) * models;
}

function scrollToRow(section, index) {
  const body = section?.querySelector(".rows tbody");
  if (!body) return;
  const top = scrollY + body.getBoundingClientRect().top + index * ROW_HEIGHT;
  const head = section.querySelector(".rows thead").offsetHeight + section.querySelector(".bar").offsetHeight;
  if (top - head < scrollY) scrollTo(0, top - head - ROW_HEIGHT);
  else if (top + ROW_HEIGHT > scrollY + innerHeight) scrollTo(0, top + 2 * ROW_HEIGHT - innerHeight);
}

function caseColumns(shownLabels) {
  const several = skillByName.size > 1;
  const brief = briefNames(shownLabels);
  const isBad = ({ outcome }) => outcome !== "passed";
  return [
    { id: "case", title: "case", kind: "name", cell: ({ worst }) => {
      const failure = isBad(worst) ? firstFailure(worst) : null;
      return html`<a class="case-name" href=${href({ case: worst.id })}>
        ${several ? html`<span class="of">${worst.skill} / </span>` : null}${worst.case}</a>
        <small class="question">${oneLine(worst.question)}</small>
        <small class="reason-below">${oneLine(failure?.reason ?? worst.question)}</small>`;
    } },
    shownLabels.length <= FEW_MODELS && { id: "failed", title: "first failed check", kind: "reason", cell: ({ worst }) => {
      const failure = isBad(worst) ? firstFailure(worst) : null;
      return failure ? html`<span class="clamp"><b>${failure.check}</b> ${oneLine(failure.reason)}</span>` : null;
    } },
    ...shownLabels.map((label) => ({
      id: `on ${label}`, title: html`<span title=${label}>${brief.get(label)}</span>`, kind: "on",
      cell: (row) => html`<${TestCell} test=${row.matching.find((test) => test.label === label)} />`,
    })),
  ].filter(Boolean);
}

// TestCell({ test }): the outcome of a case on a model, and how often it passes without the
// skill and with it; coloured where the runs show a difference.
function TestCell({ test }) {
  if (!test) return null;
  const [before, after] = [countOf(test, "baseline"), countOf(test, "skill")];
  const kind = test.shown ? { "only with": "good", "only without": "bad" }[test.signal]
    : ["error", "not run"].includes(test.outcome) ? "warn" : test.outcome === "regressed" ? "bad" : "none";
  return html`<a class="cell ${kind}"
      title=${[test.outcome, test.signal, test.reason].filter(Boolean).join(": ")} href=${href({ case: test.id })}>
    <span class="unseen">${test.case} on ${test.label}: ${test.outcome}, </span>
    <${Mark} outcome=${test.outcome} />
    <span class="passes">${before ? html`<span class="before">${format.count(before)} →${" "}</span>`
      : null}${format.count(after)}</span></a>`;
}

// The bar: search, a chip for each signal and each bad end with what the search shows of it.
function FilterBar({ address, rows: shownCases }) {
  const shown = shownCases.reduce((sum, row) => sum + row.matching.length, 0);
  const set = ["skill", "model", "tag", "change"]
    .flatMap((name) => address.getAll(name).map((value) => [name, value]));
  const hints = address.getAll("signal").filter((signal) => Object.hasOwn(SIGNALS, signal));
  const once = run.summary.length && run.summary.every((row) => row.runs === 1);
  const bar = useRef(null);
  useEffect(() => { // the head of the table sticks below the bar, however many lines that has
    const measure = () => bar.current.parentElement.style.setProperty("--bar", `${bar.current.offsetHeight}px`);
    const observer = new ResizeObserver(measure);
    observer.observe(bar.current);
    return () => observer.disconnect();
  }, []);
  return html`<div class="bar" ref=${bar}>
    <input type="search" placeholder="Search   /" aria-label="Search"
      value=${address.get("q") ?? ""} onInput=${(event) => go({ q: event.target.value }, { replace: true })} />
    <${Chips} name="signal" values=${Object.keys(SIGNALS)} address=${address} />
    <${Chips} name="outcome" values=${["regressed", "failed", "error", "not run", "accepted"]} address=${address} />
    ${set.map(([name, value]) => html`<a class="chip" key=${name + value} href=${without(address, name, value)}
      aria-label=${`Remove the filter ${name}: ${value}`}>
      <span>${name}:</span> ${value} <span aria-hidden="true">×</span></a>`)}
    <span class="shown" role="status">${shown === tests.length ? counted(shown, "test")
      : `${format.whole(shown)} of ${counted(tests.length, "test")}`}</span>
    ${hints.map((signal) => html`<p key=${signal} class="hint"><b>${signal}</b>: ${SIGNALS[signal]}${
      once ? "; one run each: what varies is not seen" : ""}</p>`)}
  </div>`;
}

const without = (address, name, value) => href(
  { [name]: address.getAll(name).filter((other) => other !== value) },
);
const toggled = (address, name, value) => (address.getAll(name).includes(value)
  ? without(address, name, value) : href({ [name]: [...address.getAll(name), value] }));

function countsOf(address, name) {
  const matches = matcher(address, name);
  const counts = new Map();
  for (const test of tests) {
    if (!matches(test)) continue;
    for (const value of FILTERS[name](test)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

const shownSignals = new Set(tests.filter(({ shown }) => shown).map(({ signal }) => signal));

// Chips({ name, values, address }): of the values that tests have, each with their number.
function Chips({ name, values, address }) {
  const counts = useMemo(() => countsOf(address, name), [String(address)]);
  const all = useMemo(() => countsOf(new URLSearchParams(), name), []);
  const chosen = address.getAll(name);
  return html`${values.filter((value) => all.has(value)).map((value) => html`
    <a class="chip toggle" key=${value} href=${toggled(address, name, value)} title=${SIGNALS[value] ?? null}
      aria-current=${chosen.includes(value) ? "true" : null}>
      ${name === "signal" ? html`<i class="key ${classOf(value)} ${shownSignals.has(value) ? "filled" : ""}" aria-hidden="true" />`
        : html`<${Mark} outcome=${value} />`} ${value} <b>${format.whole(counts.get(value) ?? 0)}</b></a>`)}`;
}
