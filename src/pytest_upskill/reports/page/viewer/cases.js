// The table of cases × models, with filters and search. Filters are in the address; those of one
// kind widen, those of several kinds narrow what is shown.

// How to filter: by name, the values of a test.
const FILTERS = {
  outcome: outcomesOf,
  skill: (test) => [test.skill],
  model: (test) => [test.label],
  tag: (test) => test.tags,
  check: (test) => failedChecks(test),
  signal: (test) => test.signals,
  change: (test) => (test.change ? [test.change.kind] : []),
  verdict: (test) => [verdictOf.get(JSON.stringify([test.skill, test.label])) ?? ""].filter(Boolean),
};
const verdictOf = new Map(
  summaryRows.map((row) => [JSON.stringify([row.skill, row.label]), row.word]),
);
const TITLES = { check: "failed check", change: "changed" };

function failedChecks(test) {
  const failed = test.records.filter((record) => record.arm === "skill")
    .flatMap((record) => record.checks.filter((check) => !check.passed && check.required));
  return [...new Set(failed.map((check) => check.check))];
}

// What a search looks at, made when it is first needed.
const haystacks = new Map();
function haystackOf(test) {
  if (!haystacks.has(test.id)) {
    const texts = [test.skill, test.case, test.label, test.question, test.nodeid, ...test.tags];
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
  const rows = caseRows
    .map((row) => ({ ...row, matching: row.tests.filter(matches) }))
    .filter((row) => row.matching.length);
  for (const row of rows) {
    row.worst = row.matching.reduce((a, b) => (severity(b) < severity(a) ? b : a));
  }
  return rows.sort(orders(address.get("sort")));
}

function orders(sort) {
  const byNumber = (a, b) => a.number - b.number;
  if (sort === "case") return (a, b) => a.worst.case.localeCompare(b.worst.case) || byNumber(a, b);
  if (sort === "file") return byNumber;
  const bad = (row) => {
    const test = labels.includes(sort) ? row.byLabel.get(sort) : row.worst;
    return test ? severity(test) : OUTCOMES.length;
  };
  return (a, b) => bad(a) - bad(b) || byNumber(a, b);
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

function Cases({ address }) {
  const rows = useMemo(() => shownRows(address), [String(address)]);
  const [current, setCurrent] = useState(lastOpened);
  const section = useRef(null);
  const open = (row) => go({ case: row.worst.id });
  const move = (step) => () => {
    const at = rows.findIndex((row) => row.id === current);
    const row = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))];
    if (!row) return;
    setCurrent(row.id);
    scrollToRow(section.current, rows.indexOf(row));
  };
  useKeys({
    j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1),
    Enter: () => { const row = rows.find((one) => one.id === current); if (row) open(row); },
    "/": () => section.current.querySelector("input[type=search]").focus(),
    Escape: () => {
      if (document.activeElement?.matches("input")) document.activeElement.blur();
      else go({ ...Object.fromEntries(Object.keys(FILTERS).map((name) => [name, null])), q: null });
    },
  });
  useLayoutEffect(() => {
    const at = rows.findIndex((row) => row.id === lastOpened);
    if (at >= 0) scrollToRow(section.current, at);
  }, []);
  const models = address.getAll("model");
  const columns = caseColumns(models.length ? labels.filter((label) => models.includes(label)) : labels,
    address);
  return html`<section class="cases" ref=${section} aria-label="Cases">
    <${FilterBar} address=${address} rows=${rows} />
    ${rows.length ? html`<${Table} label="Cases" rows=${rows} columns=${columns} current=${current}
      least=${leastWidth(columns.length - 2)}
      keyOf=${(row) => row.id} hrefOf=${(row) => href({ case: row.worst.id })} />`
      : html`<p class="nothing">No test matches. <a href=${href({}, true)}>Show all</a></p>`}
    ${data.left_out ? html`<p class="note">To keep this file small, ${counted(data.left_out, "trial")}
      ${" "}lost the end of long texts. The JSON report has them whole.</p>` : null}
  </section>`;
}

// As tables.css has it.
function leastWidth(models) {
  if (innerWidth <= 640) return 130 + 58 * models;
  return 420 + (innerWidth <= 1100 ? 104 : 128) * models;
}

function scrollToRow(section, index) {
  const body = section?.querySelector("tbody");
  if (!body) return;
  const top = scrollY + body.getBoundingClientRect().top + index * ROW_HEIGHT;
  const head = section.querySelector("thead").offsetHeight + section.querySelector(".bar").offsetHeight;
  if (top - head < scrollY) scrollTo(0, top - head - ROW_HEIGHT);
  else if (top + ROW_HEIGHT > scrollY + innerHeight) scrollTo(0, top + 2 * ROW_HEIGHT - innerHeight);
}

function caseColumns(shownLabels, address) {
  const several = skillByName.size > 1;
  const sort = address.get("sort");
  const title = (id, text) => html`<a class="sort" href=${href({ sort: sort === id ? null : id })}
    aria-current=${sort === id ? "true" : null} title=${text}>${text}</a>`;
  return [
    { id: "case", title: title("case", "case"), kind: "name", cell: (row) => {
      const failure = firstFailure(row.worst);
      return html`<a class="case-name" href=${href({ case: row.worst.id })}>
        ${several ? html`<span class="of">${row.worst.skill} / </span>` : null}${row.worst.case}</a>
        <small class="question">${oneLine(row.worst.question)}</small>
        <small class="reason-below">${oneLine(failure?.reason ?? row.worst.question)}</small>`;
    } },
    { id: "failed", title: "first failed check", kind: "reason", cell: (row) => {
      const failure = row.worst.outcome === "passed" ? null : firstFailure(row.worst);
      return failure ? html`<span class="clamp"><b>${failure.check}</b> ${oneLine(failure.reason)}</span>`
        : null;
    } },
    ...shownLabels.map((label) => ({
      id: `on ${label}`, title: title(label, label), kind: "on",
      cell: (row) => html`<${TestCell} test=${row.byLabel.get(label)}
        faded=${!row.matching.includes(row.byLabel.get(label))} />`,
    })),
  ];
}

// TestCell({ test, faded }): the outcome of a case on a model, and how often it passes.
function TestCell({ test, faded }) {
  if (!test) return null;
  const { baseline, skill } = test.passes;
  return html`<a class="cell ${kindOf(test.outcome)} ${faded ? "faded" : ""}"
      title=${[test.outcome, test.reason].filter(Boolean).join(": ")} href=${href({ case: test.id })}>
    <span class="unseen">${test.case} on ${test.label}: ${test.outcome}, </span>
    <${Mark} outcome=${test.outcome} />
    <span class="passes">${baseline ? html`<span class="before">${format.count(baseline)} →${" "}</span>`
      : null}${format.count(skill)}</span></a>`;
}

// The bar: search, a chip for each outcome with what the search shows of it, further filters.
function FilterBar({ address, rows }) {
  const shown = rows.reduce((sum, row) => sum + row.matching.length, 0);
  const set = [...new Set(Object.keys(FILTERS))].filter((name) => name !== "outcome")
    .flatMap((name) => address.getAll(name).map((value) => [name, value]));
  const bar = useRef(null);
  useEffect(() => { // the head of the table sticks below the bar, however many lines that has
    const measure = () => bar.current.parentElement.style.setProperty("--bar", `${bar.current.offsetHeight}px`);
    const observer = new ResizeObserver(measure);
    observer.observe(bar.current);
    return () => observer.disconnect();
  }, []);
  return html`<div class="bar" ref=${bar}>
    <input type="search" placeholder="Search cases, questions, answers   /" aria-label="Search"
      value=${address.get("q") ?? ""} onInput=${(event) => go({ q: event.target.value }, { replace: true })} />
    <${OutcomeChips} address=${address} />
    ${set.map(([name, value]) => html`<a class="chip" key=${name + value} href=${without(address, name, value)}
      aria-label=${`Remove the filter ${TITLES[name] ?? name}: ${value}`}>
      <span>${TITLES[name] ?? name}:</span> ${value} <span aria-hidden="true">×</span></a>`)}
    <${FilterMenu} address=${address} />
    <span class="shown" role="status">${shown === tests.length ? counted(shown, "test")
      : `${format.whole(shown)} of ${counted(tests.length, "test")}`}</span>
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

function OutcomeChips({ address }) {
  const counts = useMemo(() => countsOf(address, "outcome"), [String(address)]);
  const chosen = address.getAll("outcome");
  return html`${OUTCOMES.filter((outcome) => counts.get(outcome) || chosen.includes(outcome))
    .map((outcome) => html`<a class="chip toggle ${kindOf(outcome)}" key=${outcome}
      href=${toggled(address, "outcome", outcome)} aria-current=${chosen.includes(outcome) ? "true" : null}>
      <${Mark} outcome=${outcome} /> ${outcome} <b>${format.whole(counts.get(outcome) ?? 0)}</b></a>`)}`;
}

function FilterMenu({ address }) {
  const menu = useRef(null);
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    const close = (event) => { if (!menu.current?.contains(event.target)) setOpen(false); };
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, []);
  const escape = (event) => { if (event.key === "Escape") { setOpen(false); event.stopPropagation(); } };
  return html`<span class="menu" ref=${menu} onKeyDown=${escape}>
    <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>+ Filter</button>
    ${isOpen ? html`<div class="panel">${Object.keys(FILTERS).filter((name) => name !== "outcome")
      .map((name) => html`<${FilterValues} key=${name} name=${name} address=${address} />`)}</div>` : null}
  </span>`;
}

function FilterValues({ name, address }) {
  const counts = useMemo(() => countsOf(address, name), [String(address)]);
  const chosen = address.getAll(name);
  const values = [...counts].sort(([, a], [, b]) => b - a);
  if (values.length < 2 && !chosen.length && ["skill", "model", "verdict"].includes(name)) return null;
  if (!values.length) return null;
  return html`<div role="group" aria-label=${TITLES[name] ?? name}><p>${TITLES[name] ?? name}</p>
    ${values.slice(0, 50).map(([value, number]) => html`<a key=${value} class="value"
      href=${toggled(address, name, value)} aria-current=${chosen.includes(value) ? "true" : null}>
      <span>${value}</span> <b>${format.whole(number)}</b></a>`)}</div>`;
}
