// What changed since an earlier run: Since({ changes, address }), of `changes_values` in
// comparing.py. `change` in the address shows the cases of these kinds only.

// In the order of the page: what is to be mended comes first.
const CHANGE_KINDS = ["broke", "fell", "fixed", "rose", "checks", "edited", "new", "gone", "answer"];
const CHANGE_TITLES = {
  broke: "passed before, fails now", fixed: "failed before, passes now",
  fell: "passes fewer runs", rose: "passes more runs",
  checks: "passes as often, by other checks", answer: "only the answer changed",
  edited: "question or checks edited", new: "not in the earlier run", gone: "not in this run",
};
const sizeOfChange = ({ was, now }) => Math.abs((was ? was[0] / was[1] : 0) - (now ? now[0] / now[1] : 0));

// Answers that are still the same come without their texts.
for (const test of tests) {
  for (const record of test.change?.records ?? []) {
    const now = record.same && recordOf(test, record.arm, record.run);
    if (now) Object.assign(record, { output: now.output, files: now.files });
  }
}

function Since({ changes, address }) {
  const { compared, commit } = changes;
  return html`<section class="since" aria-label="Changes">
    <p class="facts compared"><span>since <b>${format.day(changes.started)}</b></span>
      <span>run <code>${changes.id}</code>${changes.later_id ? html`, now <code>${changes.later_id}</code>` : null}</span>
      ${commit ? html`<span>commit <code>${commit.id.slice(0, 9)}</code>${commit.dirty ? " with uncommitted changes" : ""}</span>` : null}
      <span>${counted(compared, "test")} in both</span></p>
    ${changes.pairs.length ? html`<${ChangedPairs} pairs=${changes.pairs} />` : null}
    ${changes.notes.length ? html`<ul class="notes">${changes.notes.map((note) => html`
      <li key=${note}>${note}</li>`)}</ul>` : null}
    <${ChangedCases} changes=${changes} address=${address} />
  </section>`;
}

// A row for each skill on a model, the worst first; of many, those without a change are folded.
function ChangedPairs({ pairs }) {
  const [all, showAll] = useState(pairs.length <= MOST_ROWS);
  const several = new Set(pairs.map((pair) => pair.skill)).size > 1;
  const order = ["worse", "no case in common", "better", "no change shown"];
  const wordOf = (pair) => pair.change?.verdict ?? "no case in common";
  const rows = [...pairs].sort((a, b) => order.indexOf(wordOf(a)) - order.indexOf(wordOf(b)));
  const tokens = pairs.some((pair) => pair.tokens);
  const columns = [
    { id: "verdict", title: "verdict", kind: "verdict", cell: (pair) => html`<${Word} word=${wordOf(pair)} />` },
    { id: "subject", title: several ? "skill on model" : "model", kind: "name", cell: (pair) => html`
      <span class="case-name">${several ? html`<span class="of">${pair.skill} / </span>` : null}${pair.title}</span>
      <small title=${pair.about.join("; ")}><span class="narrow">${pair.text ?? DASH}, ${ratesOf(pair)}; </span>
        ${pair.about.join("; ")}</small>` },
    { id: "rates", title: html`<${Scale} low="0%" title="then → now" high="100%" />`, kind: "plot wide",
      cell: (pair) => (pair.before == null ? null : html`<${Dumbbell} baseline=${pair.before} skill=${pair.after} />`) },
    { id: "numbers", title: "then → now", kind: "num rates wide", cell: ratesOf },
    { id: "plot", title: html`<${Scale} low="-100" title="change" high="+100" />`, kind: "plot",
      cell: ({ change }) => (change ? html`<${Interval} value=${change.points} low=${change.low} high=${change.high} />` : null) },
    { id: "change", title: "change in points", kind: "num span wide", cell: (pair) => pair.text ?? DASH },
    tokens && { id: "tokens", title: "tokens", kind: "num short middle",
      cell: ({ tokens: share }) => (share ? signedPercent(share.change) : DASH) },
    { id: "cases", title: "in both", kind: "num short middle", cell: (pair) => `${pair.cases}` },
  ].filter(Boolean);
  const shown = all ? rows : rows.filter((pair) => wordOf(pair) !== "no change shown");
  return html`${shown.length ? html`<${Table} label="What changed on each model" rows=${shown} columns=${columns}
      keyOf=${(pair) => `${pair.skill} ${pair.title}`} />` : null}
    ${shown.length < rows.length ? html`<p class="folded"><button type="button" class="plain"
      onClick=${() => showAll(true)}>${counted(rows.length - shown.length, "more row")}</button> no change shown</p>` : null}`;
}

const ratesOf = ({ before, after }) => (before == null ? DASH
  : `${format.percent(before)} → ${format.percent(after)}`);
const signedPercent = (share) => `${format.points(share)}%`;

// Scale({ low, title, high }): the head of a column with drawings.
function Scale({ low, title, high }) {
  return html`<span class="scale"><span>${low}</span><span>${title}</span><span>${high}</span></span>`;
}

// All changes, the worst first; those of the kinds that the address names; and their tests.
const allChanges = data.changes ? [
  ...data.changes.cases,
  ...data.changes.gone.map(([skill, model, name]) => ({ skill, model, case: name, kind: "gone" })),
].sort((a, b) => CHANGE_KINDS.indexOf(a.kind) - CHANGE_KINDS.indexOf(b.kind)
  || (b.shown ? 1 : 0) - (a.shown ? 1 : 0) || sizeOfChange(b) - sizeOfChange(a)) : [];
const changeCounts = new Map([...groupBy(allChanges, ({ kind }) => kind)].map(([kind, of]) => [kind, of.length]));
function shownChanges(address) {
  const chosen = address.getAll("change");
  return allChanges.filter(({ kind }) => !chosen.length || chosen.includes(kind));
}
const changedTests = (address) => shownChanges(address).map(testOfChange).filter(Boolean);

// SinceLine(): what changed, in one line for the first screen.
function SinceLine() {
  if (!data.changes?.compared) return null;
  const kinds = CHANGE_KINDS.filter((kind) => changeCounts.has(kind) && kind !== "answer");
  return html`<p class="since-line">since <a href=${href({ view: "changes", change: null })}>${format.day(data.changes.started)}</a>:
    ${" "}${kinds.length ? kinds.map((kind, index) => html`${index ? ", " : ""}<a key=${kind} class=${kindOf(kind)}
      href=${href({ view: "changes", change: kind })}>${format.whole(changeCounts.get(kind))} ${kind}</a>`) : "no result changed"}</p>`;
}

function ChangedCases({ changes, address }) {
  const chosen = address.getAll("change");
  const [all, counts, rows] = [allChanges, changeCounts, shownChanges(address)];
  if (!all.length) {
    return changes.compared ? html`<p class="nothing">Nothing changed:
      ${" "}${counted(changes.compared, "test")} with the same results and the same answers.</p>` : null;
  }
  return html`<div class="cases">
    <div class="bar">${CHANGE_KINDS.filter((kind) => counts.has(kind)).map((kind) => html`
      <a key=${kind} class="chip toggle ${kindOf(kind)}" href=${toggled(address, "change", kind)}
        aria-current=${chosen.includes(kind) ? "true" : null} title=${CHANGE_TITLES[kind]}>
        ${kind} <b>${format.whole(counts.get(kind))}</b></a>`)}
      <span class="shown" role="status">${rows.length === all.length ? counted(rows.length, "change")
        : `${format.whole(rows.length)} of ${counted(all.length, "change")}`}</span></div>
    <${Table} label="Changed cases" rows=${rows} columns=${changeColumns(rows)}
      keyOf=${(change) => JSON.stringify([change.skill, change.model, change.case])}
      hrefOf=${hrefOfChange} /></div>`;
}

const testOfPlace = new Map(tests.map((test) => [JSON.stringify([test.skill, test.label, test.case]), test]));
const testOfChange = (change) => testOfPlace.get(JSON.stringify([change.skill, change.model, change.case]));
// An edited or a new case is shown as it is; of others, what differs comes first.
function hrefOfChange(change) {
  const test = testOfChange(change);
  return test ? href({ case: test.id, show: change.records?.length && change.kind !== "edited" ? "earlier" : null }) : null;
}

function changeColumns(rows) {
  const several = skillByName.size > 1;
  const address = hrefOfChange;
  return [
    { id: "kind", title: "change", kind: "verdict", cell: ({ kind }) => html`<${Word} word=${kind} title=${CHANGE_TITLES[kind]} />` },
    { id: "case", title: "case", kind: "name", cell: (change) => {
      const name = html`${several ? html`<span class="of">${change.skill} / </span>` : null}${change.case}`;
      return html`${address(change) ? html`<a class="case-name" href=${address(change)}>${name}</a>`
        : html`<span class="case-name">${name}</span>`}
        <small><span class="narrow">${change.model} · </span>${oneLine(testOfChange(change)?.question ?? "")}</small>`;
    } },
    { id: "model", title: "model", kind: "model wide", cell: (change) => change.model },
    { id: "passed", title: "passed", kind: "num short", cell: passedThenNow },
    { id: "evidence", title: "evidence", kind: "evidence wide", cell: evidenceOf },
    rows.some(failureNow) && { id: "failed", title: "first failed check now", kind: "reason middle", cell: (change) => {
      const failure = failureNow(change);
      return failure ? html`<span class="clamp"><b>${failure.check}</b> ${oneLine(failure.reason)}</span>` : null;
    } },
  ].filter(Boolean);
}

function failureNow(change) {
  const test = testOfChange(change);
  return test && test.outcome !== "passed" ? firstFailure(test) : null;
}

function passedThenNow({ kind, was, now, scores }) {
  if (kind === "gone" || kind === "edited") return DASH;
  if (kind === "new") return format.count(now);
  if (kind === "checks" && scores[0] !== scores[1]) return `${scores.map(format.percent).join(" → ")} of checks`;
  return `${format.count(was)} → ${format.count(now)}`;
}

// Better and worse need evidence; anything else is only counted.
function evidenceOf({ kind, shown, other_threshold: threshold }) {
  const judged = ["broke", "fell", "fixed", "rose"].includes(kind);
  const word = kind === "broke" || kind === "fell" ? "worse" : "better";
  const words = [judged && (shown ? word : "could be chance"), threshold && "another threshold"];
  return words.filter(Boolean).join("; ") || CHANGE_TITLES[kind];
}
