// Queries and whether they open the skill: Triggers({ address }), of run.trigger_summaries and
// data.triggers. In the address, `queries` shows some of them only (needed, spared or wrong), and
// `trigger` is the row whose advice is shown.

const triggerRows = run ? run.trigger_summaries.map((summary, number) => (
  { ...summary, ...data.triggers[number], number, label: labelOf(summary) })) : [];

// A row is a query with what came of it on each model, the worst first.
const queryRows = [...groupBy(
  triggerRows.flatMap(({ skill, label, queries }) => queries.map((query) => ({ ...query, skill, label }))),
  (query) => JSON.stringify([query.skill, query.case]),
)].map(([id, own], number) => ({
  id, number, skill: own[0].skill, case: own[0].case, query: own[0].query,
  should: own[0].should_open, byLabel: new Map(own.map((query) => [query.label, query])),
  tests: (testsOfCase.get(id) ?? []), instead: instead(own),
  wrong: Math.max(...own.map((query) => wrongness(query))),
})).sort((a, b) => b.wrong - a.wrong || a.number - b.number);

// The share of runs that decided wrongly; an error is as bad as half of them.
function wrongness({ rate, should_open: should, errored }) {
  return Math.max(errored ? 0.5 : 0, rate == null ? 0 : should ? 1 - rate : rate);
}

function instead(own) {
  const counts = new Map();
  for (const query of own.filter((one) => one.should_open)) {
    for (const [name, number] of Object.entries(query.instead)) counts.set(name, (counts.get(name) ?? 0) + number);
  }
  return [...counts].sort(([, a], [, b]) => b - a);
}

const QUERY_FILTERS = [
  ["all", "all", () => true],
  ["wrong", "wrong", (row) => row.wrong > 0],
  ["needed", "should open it", (row) => row.should],
  ["spared", "should not", (row) => !row.should],
];

const queryFilter = (address) => QUERY_FILTERS.find(([id]) => id === address.get("queries")) ?? QUERY_FILTERS[0];
// The tests of the queries that are shown, on the model of one of them.
const queryTests = (address, { label }) => queryRows.filter(queryFilter(address)[2])
  .map((row) => row.tests.find((test) => test.label === label)).filter(Boolean);

function Triggers({ address }) {
  const chosen = queryFilter(address);
  const rows = queryRows.filter(chosen[2]);
  const shownLabels = [...new Set(triggerRows.map((row) => row.label))];
  const several = new Set(triggerRows.map((row) => row.skill)).size > 1;
  const selected = triggerRows.length === 1 ? triggerRows[0]
    : triggerRows.find((row) => `${row.number}` === address.get("trigger"));
  return html`<section class="triggers" aria-label="Triggers">
    <${Table} label="How often skills are opened" rows=${triggerRows} columns=${triggerColumns(several)}
      keyOf=${(row) => row.number} current=${triggerRows.length > 1 ? selected?.number : null}
      hrefOf=${(row) => href({ trigger: selected === row ? null : `${row.number}` })} />
    ${selected ? html`<div class="selected"><p>${selected.sentence}.</p>
      <ul>${selected.advice.map((line) => html`<li key=${line}>${line}</li>`)}</ul></div>` : null}
    <div class="cases"><div class="bar">
      <${Choice} label="Queries" selected=${chosen[0]} choose=${(id) => go({ queries: id === "all" ? null : id })}
        options=${QUERY_FILTERS.map(([id, title, fits]) => [id, `${title} ${queryRows.filter(fits).length}`])} />
      <span class="shown" role="status">${counted(rows.length, "query")}</span></div>
      <${Table} label="Queries" rows=${rows} columns=${queryColumns(shownLabels, several)} keyOf=${(row) => row.id}
        hrefOf=${(row) => (row.tests.length ? href({ case: worstTest(row).id }) : null)} /></div>
  </section>`;
}

const worstTest = (row) => row.tests.reduce((a, b) => (severity(b) < severity(a) ? b : a));

function triggerColumns(several) {
  const share = (name) => ({ id: name, title: name, kind: "num span", cell: ({ texts }) => (texts[name]
    ? html`<b>${texts[name][0]}</b> <small>${texts[name][1]}</small>` : DASH) });
  return [
    { id: "subject", title: several ? "skill on model" : "model", kind: "name", cell: (row) => html`
      <a class="case-name" href=${href({ trigger: `${row.number}` })}>
        ${several ? html`<span class="of">${row.skill} / </span>` : null}${row.label}
        ${row.word ? html` <${Word} word=${row.word} />` : null}</a>
      <small title=${row.sentence}>${row.sentence}</small>` },
    { id: "plot", title: html`<${Scale} low="0%" title="not needed → needed" high="100%" />`, kind: "plot wide",
      cell: (row) => html`<${Dumbbell} baseline=${row.false_alarms?.rate ?? null} skill=${row.recall?.rate ?? null}
        low=${row.recall?.interval.low ?? null} high=${row.recall?.interval.high ?? null} />` },
    share("recall"), share("false alarms"),
    { id: "queries", title: "queries", kind: "num short wide", cell: (row) => `${row.queries.length} × ${row.runs}` },
  ];
}

function queryColumns(shownLabels, several) {
  return [
    { id: "query", title: "query", kind: "name query", cell: (row) => html`
      <a class="case-name" href=${row.tests.length ? href({ case: worstTest(row).id }) : null}>
        ${oneLine(row.query || row.case)}</a>
      <small>${several ? `${row.skill} / ` : ""}${row.case}</small>` },
    { id: "should", title: "should", kind: "verdict", cell: (row) => html`
      <${Word} word=${row.should ? "open" : "stay closed"} kind="none" />` },
    { id: "instead", title: "opened instead", kind: "reason wide", cell: (row) => html`<span class="clamp">
      ${row.instead.map(([name, number]) => `${name} ${number}`).join(", ")}</span>` },
    ...shownLabels.map((label) => ({ id: `on ${label}`, title: label, kind: "on",
      cell: (row) => html`<${QueryCell} row=${row} query=${row.byLabel.get(label)}
        test=${row.tests.find((test) => test.label === label)} />` })),
  ];
}

// How often the skill was opened for a query on a model, and whether that is right.
function QueryCell({ row, query, test }) {
  if (!query) return null;
  const outcome = test?.outcome ?? "not run";
  const words = query.errored ? `${counted(query.errored, "run")} without a result: ${query.errors[0]}` : outcome;
  return html`<a class="cell ${kindOf(outcome)}" href=${test ? href({ case: test.id }) : null} title=${words}
      aria-label=${`${query.opened}/${query.runs} runs of ${row.case} on ${query.label} opened it: ${outcome}`}>
    <${Mark} outcome=${outcome} /> <span class="passes">${query.opened}/${query.runs}</span></a>`;
}
