// What changed since an earlier run: Changes({ address }), of `changes_values` in changes.py.
// `change` in the address shows the cases of these kinds only.

const MOST_LINES = 12; // of sentences, and of the last runs
// In the order of the page: what is to be mended comes first.
const CHANGE_KINDS = ["broke", "fell", "fixed", "rose", "checks", "edited", "new", "gone", "answer"];
const testOfPlace = new Map(tests.map((test) => [JSON.stringify([test.skill, test.label, test.case]), test]));
const testOfChange = (change) => testOfPlace.get(JSON.stringify([change.skill, change.model, change.case]));
const allChanges = data.changes ? [
  ...data.changes.cases,
  ...data.changes.gone.map(([skill, model, name]) => ({ skill, model, case: name, kind: "gone", records: [] })),
].sort((a, b) => CHANGE_KINDS.indexOf(a.kind) - CHANGE_KINDS.indexOf(b.kind)
  || (b.shown ? 1 : 0) - (a.shown ? 1 : 0)) : [];

function shownChanges(address) {
  const chosen = address.getAll("change");
  return allChanges.filter(({ kind }) => !chosen.length || chosen.includes(kind));
}
const changedTests = (address) => shownChanges(address).map(testOfChange).filter(Boolean);

function Changes({ address }) {
  const { started, id, compared, sentences } = data.changes;
  const counts = groupBy(allChanges, ({ kind }) => kind);
  const chosen = address.getAll("change");
  const shown = shownChanges(address);
  return html`<section class="changes" aria-label="Changes">
    <p class="facts"><span>since <b>${format.day(started)}</b></span><span>run <code>${id}</code></span>
      <span>${counted(compared, "test")} in both</span></p>
    <ul>${sentences.slice(0, MOST_LINES).map((sentence) => html`<li key=${sentence}>${sentence}</li>`)}
      ${sentences.length > MOST_LINES ? html`<li key="more">and ${sentences.length - MOST_LINES} more</li>` : null}</ul>
    <${LastRates} />
    <div class="bar">${CHANGE_KINDS.filter((kind) => counts.has(kind)).map((kind) => html`
      <a key=${kind} class="chip toggle" href=${toggled(address, "change", kind)}
        aria-current=${chosen.includes(kind) ? "true" : null} title=${CHANGE_WORDS[kind]}>
        ${kind} <b>${format.whole(counts.get(kind).length)}</b></a>`)}
      <span class="shown" role="status">${shown.length === allChanges.length ? counted(shown.length, "change")
        : `${format.whole(shown.length)} of ${counted(allChanges.length, "change")}`}</span></div>
    <${Table} label="Changed cases" rows=${shown} columns=${changeColumns()}
      keyOf=${(change) => JSON.stringify([change.skill, change.model, change.case])} hrefOf=${hrefOfChange} />
  </section>`;
}

// How often the last runs passed with the skill, the oldest first.
function LastRates() {
  const changed = new Set(allChanges.map(({ skill, model }) => `${skill} on ${model}`));
  const lines = rows.map((row) => [`${row.skill} on ${row.label}`, row.skill_rate])
    .filter(([name, rate]) => changed.has(name) && rate != null && data.changes.rates[name])
    .map(([name, rate]) => [name, [...data.changes.rates[name], rate].slice(-10)]).slice(0, MOST_LINES);
  if (!lines.length) return null;
  return html`<table class="numbers rates" aria-label="The last runs"><tbody>${lines.map(([name, rates]) => html`
    <tr key=${name}><th scope="row">${name}</th><td><${RateLine} rates=${rates} /></td>
      <td>${rates.map(format.percent).join(" ")}</td></tr>`)}</tbody></table>`;
}

function RateLine({ rates }) {
  const at = (rate, index) => `${2 + (96 * index) / (rates.length - 1)},${18 - 16 * rate}`;
  return html`<svg class="rate-line" viewBox="0 0 100 20" width="120" height="24" aria-hidden="true">
    <polyline points=${rates.map(at).join(" ")} /></svg>`;
}

function hrefOfChange(change) {
  const test = testOfChange(change);
  return test ? href({ case: test.id, show: change.records.length && change.kind !== "edited" ? "earlier" : null }) : null;
}

function changeColumns() {
  const several = skillByName.size > 1;
  return [
    { id: "kind", title: "change", kind: "verdict", cell: ({ kind, shown }) => html`
      <${Word} word=${kind} kind=${shown ? kindOf(kind) : "none"} title=${CHANGE_WORDS[kind]} />` },
    { id: "case", title: "case", kind: "name", cell: (change) => {
      const name = html`${several ? html`<span class="of">${change.skill} / </span>` : null}${change.case}`;
      const address = hrefOfChange(change);
      return html`${address ? html`<a class="case-name" href=${address}>${name}</a>`
        : html`<span class="case-name">${name}</span>`}
        <small>${change.model} · ${oneLine(testOfChange(change)?.question ?? "")}</small>`;
    } },
    { id: "passed", title: "passed", kind: "num short", cell: ({ was, now }) => (was || now
      ? `${format.count(was)} → ${format.count(now)}` : DASH) },
    { id: "evidence", title: "evidence", kind: "evidence", cell: ({ kind, shown }) => (
      ["broke", "fell", "fixed", "rose"].includes(kind) && !shown ? "could be chance" : CHANGE_WORDS[kind]) },
  ];
}
