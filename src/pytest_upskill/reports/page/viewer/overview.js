// The first screen: whether the run passed and is complete, and a row for each skill on a model,
// the worst first.

const MOST_ROWS = 8; // shown before those that are fine are folded
const MOST_PROBLEMS = 4;
const MOST_FILES = 6; // of SKILL.md, unless a row is chosen

// The rows of the summary, with their texts, their tests and how bad they are.
const summaryRows = run ? run.summary.map(summaryRow).sort(
  (a, b) => a.rank - b.rank || (a.lift ?? 0) - (b.lift ?? 0) || a.number - b.number,
) : [];

function summaryRow(row, number) {
  const label = labelOf(row);
  const own = tests.filter((test) => test.skill === row.skill && test.label === label);
  const counts = Object.fromEntries(
    OUTCOMES.map((outcome) => [outcome, own.filter((test) => test.outcome === outcome).length]),
  );
  const about = data.rows[number];
  return { ...row, ...about, number, label, counts, rank: rankOf(row, about, counts) };
}

function rankOf(row, about, counts) {
  const ranks = [
    counts.regressed || about.worse,
    row.verdict === "hurts",
    counts.failed,
    row.verdict === "incomplete" || counts.error,
    !["helps", "not needed"].includes(row.verdict),
    row.verdict === "not needed",
  ];
  const rank = ranks.findIndex(Boolean);
  return rank < 0 ? ranks.length : rank;
}
const isFine = (row) => row.rank >= 4;

function Overview({ address }) {
  return html`<${Outcome} />
    <section class="overview" aria-label="Skills and models">
      ${summaryRows.length ? html`<${SummaryTable} address=${address} />` : null}
      <${Selected} address=${address} />
    </section>`;
}

// Whether the run passed, how its tests ended, and what is wrong with it or missing.
function Outcome() {
  const [all, showAll] = useState(false);
  const lines = [
    ...data.problems.map((text) => ["bad", text]),
    ...data.incomplete.map((text) => ["warn", text]),
  ];
  const shown = all ? lines : lines.slice(0, MOST_PROBLEMS);
  const kind = { passed: "good", failed: "bad" }[data.outcome] ?? "warn";
  return html`<section class="outcome ${kind}" aria-label="Outcome">
    <p class="headline"><b class="state">${data.outcome}</b>
      ${OUTCOMES.map((outcome) => html`<${OutcomeCount} key=${outcome} outcome=${outcome} />`)}
    </p>
    ${lines.length ? html`<ul class="problems">
      ${shown.map(([of, text], index) => html`<li key=${index} class=${of}>${text}</li>`)}
      ${lines.length > shown.length ? html`<li key="more"><button type="button" class="plain"
        onClick=${() => showAll(true)}>and ${format.whole(lines.length - shown.length)} more</button>
      </li>` : null}</ul>` : null}
  </section>`;
}

function OutcomeCount({ outcome }) {
  const number = tests.filter((test) => test.outcome === outcome).length;
  if (!number) return null;
  return html`<a class="count-of ${kindOf(outcome)}" href=${href({ outcome, view: null })}>
    <b>${format.whole(number)}</b> ${plural(outcome, number)}</a>`;
}

const plural = (outcome, number) => (outcome === "error" && number !== 1 ? "errors" : outcome);

function SummaryTable({ address }) {
  const all = address.get("rows") === "all" || summaryRows.length <= MOST_ROWS;
  const worst = summaryRows.filter((row) => !isFine(row));
  const shown = all ? summaryRows : worst.length ? worst : summaryRows.slice(0, MOST_ROWS);
  const folded = summaryRows.filter((row) => !shown.includes(row));
  const columns = summaryColumns();
  return html`<table class="summary" role="table" aria-label="Skills and models, the worst first">
    <thead role="rowgroup"><tr role="row">${columns.map((column) => html`
      <th key=${column.id} role="columnheader" scope="col" class=${column.kind}>${column.title}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">${shown.map((row) => html`<${SummaryLine} key=${row.number} row=${row}
      columns=${columns} selected=${isSelected(row, address)} />`)}</tbody>
  </table>
  ${folded.length ? html`<p class="folded"><a href=${href({ rows: "all" })}>
    ${counted(folded.length, "more row")}</a> ${wordCounts(folded)}</p>` : null}
  ${all && summaryRows.length > MOST_ROWS ? html`<p class="folded">
    <a href=${href({ rows: null })}>Fold the rows without problems</a></p>` : null}`;
}

function wordCounts(rows) {
  const counts = [...groupBy(rows, (row) => row.word ?? "only queries")];
  return counts.map(([word, of]) => `${format.whole(of.length)} ${word}`).join(", ");
}

function isSelected(row, address) {
  return address.get("skill") === row.skill && address.get("model") === row.label;
}

function SummaryLine({ row, columns, selected }) {
  const address = selected
    ? href({ skill: null, model: null }) : href({ skill: row.skill, model: row.label });
  return html`<tr role="row" class=${selected ? "current" : ""}
      onClick=${(event) => followRow(event, address)}>
    ${columns.map((column) => html`<td key=${column.id} role="cell" class=${column.kind}
      data-title=${column.title}>${column.cell(row, address)}</td>`)}</tr>`;
}

// The columns: drawn ones, then numbers as they come, if any row has them.
const FURTHER = ["accepted", "accepted-change", "change", "difference", "opened", "recall",
  "false-alarms", "errors", "tokens", "cost"];

function summaryColumns() {
  const several = new Set(summaryRows.map((row) => row.skill)).size > 1;
  const titles = new Map(data.columns);
  const columns = [
    { id: "verdict", title: "verdict", kind: "verdict", cell: (row) => html`
      ${row.counts.regressed ? html`<${Word} word="regressed" /> ` : null}
      ${row.worse ? html`<${Word} word=${row.worse} kind="bad" /> ` : null}
      <${Word} word=${row.word ?? "queries"} kind=${kindOf(row.verdict)} />` },
    { id: "subject", title: several ? "skill on model" : "model", kind: "subject",
      cell: (row, address) => html`<a href=${address} title="Show only its cases">
        ${several ? html`<b>${row.skill}</b> <span class="on">${row.label}</span>`
          : html`<b>${row.label}</b>`}</a>` },
    { id: "rates", title: html`<span class="scale"><span>0%</span><span>without → with</span><span>100%</span></span>`,
      kind: "rates", cell: (row) => html`<${Rates} row=${row} />` },
    { id: "with", title: "without → with", kind: "num rate",
      cell: (row) => [textOf(row, "baseline"), textOf(row, "score")].filter(Boolean).join(" → ")
        || DASH },
    { id: "lift", title: "lift", kind: "num lift", cell: (row) => html`<${NumberText} row=${row} name="lift" strong />` },
    ...FURTHER.filter((name) => titles.has(name)).map((name) => ({
      id: name, title: titles.get(name), kind: `num ${name}`,
      cell: (row) => html`<${NumberText} row=${row} name=${name} />`,
    })),
    { id: "cases", title: "cases", kind: "num cases", cell: (row) => caseWords(row) },
  ];
  const needed = { lift: titles.has("lift"), errors: summaryRows.some((row) => row.errored) };
  return columns.filter(({ id }) => needed[id] ?? true);
}

const textOf = (row, name) => row.texts[name]?.[0];

function NumberText({ row, name, strong = false, full = false }) {
  const [text, brief, whole] = row.texts[name] ?? [];
  const possible = name === "lift" && row.verdict === "incomplete"; // whatever is missing
  const more = possible ? "possible" : full ? whole : brief;
  if (text == null) return DASH;
  if (name === "errors" && !row.errored) return null;
  return html`${strong && !possible ? html`<b>${text}</b>` : text}${more ? html` <small>${more}</small>` : null}`;
}

function caseWords(row) {
  if (!row.cases) return DASH;
  const part = row.cases < row.all_cases;
  return part ? html`<span class="warn-text">${row.cases} of ${row.all_cases}</span>` : `${row.cases}`;
}

// Rates are not known while answers are missing.
function Rates({ row }) {
  if (row.verdict === "incomplete" || !row.cases) return null;
  const field = row.score === "checks" ? "score" : "rate";
  const bounds = row.score === "checks" ? {} : { low: row.skill_rate_low, high: row.skill_rate_high };
  return html`<${Dumbbell} baseline=${row[`baseline_${field}`]} skill=${row[`skill_${field}`]}
    previous=${row[`previous_${field}`]} ...${bounds} />`;
}

// What there is to say of the row that is chosen, or of the only one.
function Selected({ address }) {
  const chosen = summaryRows.filter((row) => isSelected(row, address));
  const rows = summaryRows.length === 1 ? summaryRows : chosen;
  const skills = [...new Set((rows.length ? rows : summaryRows).map((row) => row.skill))];
  const spots = skills.filter((skill) => data.sweet_spots[skill]);
  return html`
    ${rows.map((row) => html`<div class="selected" key=${row.number}>
      ${row.sentence ? html`<p>${row.sentence}.</p>` : null}
      ${row.lines?.length ? html`<ul>${row.lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul>`
        : null}</div>`)}
    ${skills.length === 1 && spots.length ? html`<p class="sweet"><b>Sweet spot:</b>
      ${" "}${data.sweet_spots[spots[0]]}</p>` : null}
    <div class="folds">
      <${Fold} title="All numbers"><${AllNumbers} rows=${rows.length ? rows : summaryRows} /><//>
      ${skills.length > 1 && spots.length ? html`<${Fold} title="Sweet spots">
        ${spots.map((skill) => html`<p key=${skill}><b>${skill}:</b> ${data.sweet_spots[skill]}</p>`)}<//>`
        : null}
      ${skills.slice(0, MOST_FILES).map((name) => skillByName.get(name)).filter((skill) => skill?.text)
        .map((skill) => html`<${Fold} key=${skill.name}
          title=${skills.length > 1 ? `SKILL.md of ${skill.name}` : "SKILL.md"}>
          <${SkillFile} skill=${skill} /><//>`)}
    </div>`;
}

function AllNumbers({ rows }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="All numbers">
    <table class="numbers"><thead><tr><th scope="col">skill</th><th scope="col">model</th>
      ${data.columns.map(([name, title]) => html`<th key=${name} scope="col" class="num">${title}</th>`)}
    </tr></thead><tbody>${rows.map((row) => html`<tr key=${row.number}>
      <td>${row.skill}</td><td title=${row.model_id}>${row.label}</td>
      ${data.columns.map(([name]) => html`<td key=${name} class="num">
        <${NumberText} row=${row} name=${name} full /></td>`)}</tr>`)}</tbody></table></div>`;
}
