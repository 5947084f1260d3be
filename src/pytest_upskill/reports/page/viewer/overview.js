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

const isRegressed = (row) => row.counts.regressed > 0 || row.accepted_verdict === "worse";

function rankOf(row, about, counts) {
  const ranks = [
    counts.regressed || row.accepted_verdict === "worse" || about.worse,
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
      ${Object.entries(run.outcome_counts).sort(([a], [b]) => OUTCOMES.indexOf(a) - OUTCOMES.indexOf(b))
        .map(([outcome, number]) => html`<${OutcomeCount} key=${outcome} outcome=${outcome} number=${number} />`)}
    </p>
    ${lines.length ? html`<ul class="problems">
      ${shown.map(([of, text], index) => html`<li key=${index} class=${of}>${text}</li>`)}
      ${lines.length > shown.length ? html`<li key="more"><button type="button" class="plain"
        onClick=${() => showAll(true)}>and ${format.whole(lines.length - shown.length)} more</button>
      </li>` : null}</ul>` : null}
    <${SinceLine} />
  </section>`;
}

function OutcomeCount({ outcome, number }) {
  const regressed = outcome === "failed" ? tests.filter((test) => test.outcome === "regressed").length : 0;
  return html`<span class="count-of ${kindOf(outcome)}"><a href=${href({ outcome, view: null })}>
      <b>${format.whole(number)}</b> ${plural(outcome, number)}</a>${regressed ? html` (<a
        href=${href({ outcome: "regressed", view: null })}>${format.whole(regressed)} regressed</a>)` : null}
    </span>`;
}

const plural = (outcome, number) => (outcome === "error" && number !== 1 ? "errors" : outcome);

function SummaryTable({ address }) {
  const all = address.get("rows") === "all" || summaryRows.length <= MOST_ROWS;
  const worst = summaryRows.filter((row) => !isFine(row));
  const shown = all ? summaryRows : (worst.length ? worst : summaryRows).slice(0, MOST_ROWS);
  const folded = summaryRows.filter((row) => !shown.includes(row));
  const columns = summaryColumns();
  return html`<div class="scroll"><table class="summary" role="table" aria-label="Skills and models, the worst first">
    <thead role="rowgroup"><tr role="row">${columns.map((column) => html`
      <th key=${column.id} role="columnheader" scope="col" class=${column.kind}>${column.title}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">${shown.map((row) => html`<${SummaryLine} key=${row.number} row=${row}
      columns=${columns} selected=${isSelected(row, address)} />`)}</tbody>
  </table></div>
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
const FURTHER = ["accepted", "change", "since", "difference", "opened", "recall", "false-alarms",
  "errors", "tokens", "cost"];

function summaryColumns() {
  const several = new Set(summaryRows.map((row) => row.skill)).size > 1;
  const titles = new Map(data.columns);
  const columns = [
    { id: "verdict", title: "verdict", kind: "verdict", cell: (row) => html`
      ${isRegressed(row) ? html`<${Word} word="regressed" title=${row.accepted_words} /> ` : null}
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
  const [both, brief, whole, withSkill] = row.texts[name] ?? [];
  const text = !full && ["tokens", "cost"].includes(name) ? withSkill : both;
  const possible = name === "lift" && row.verdict === "incomplete"; // whatever is missing
  const more = possible ? "possible" : full ? whole : brief;
  if (text == null) return DASH;
  if (name === "errors" && !row.errored) return null;
  const fell = name === "change" && row.accepted_verdict === "worse";
  if (fell) return html`<b class="bad-text">${text}</b>`;
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
    previous=${row[`previous_${field}`]} accepted=${row.accepted_rate} ...${bounds} />`;
}

// What there is to say of the row that is chosen, or of the only one.
function Selected({ address }) {
  const chosen = summaryRows.filter((row) => isSelected(row, address));
  const rows = summaryRows.length === 1 ? summaryRows : chosen;
  const skills = [...new Set((rows.length ? rows : summaryRows).map((row) => row.skill))];
  const spots = skills.filter((skill) => data.sweet_spots[skill]);
  return html`
    ${rows.map((row) => html`<div class="selected" key=${row.number}>
      ${row.accepted_words ? html`<p class="bad-text">${row.accepted_words}</p>` : null}
      ${row.sentence ? html`<p>${row.sentence}.</p>` : null}
      ${row.lines?.length ? html`<ul>${row.lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul>`
        : null}</div>`)}
    ${skills.length === 1 && spots.length ? html`<p class="sweet"><b>Sweet spot:</b>
      ${" "}${data.sweet_spots[spots[0]]}</p>` : null}
    <div class="folds">
      <${Fold} title="All numbers"><${AllNumbers} rows=${rows.length ? rows : summaryRows} /><//>
      ${skills.length === 1 && plane(skills[0]) ? html`<${Fold} title="Cost and rate">
        <${Frontier} ...${plane(skills[0])} /><//>` : null}
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

// The rates of a skill's models against what an answer costs, or its tokens if prices are not
// known; null with one model. Nothing is both cheaper and better than what is on the dashed line.
function plane(skill) {
  const rows = summaryRows.filter((row) => row.skill === skill && row.verdict !== "incomplete");
  for (const [field, unit, factor, write] of [
    ["cost", "$ per 1000 answers", 1000, format.dollars], ["tokens", "tokens per answer", 1, format.whole],
  ]) {
    const points = rows.flatMap((row) => ["baseline", "skill"].map((arm) => ({
      arm, label: row.label, x: factor * row[`${arm}_${field}`],
      rate: row[`${arm}_${row.score === "checks" ? "score" : "rate"}`],
    }))).filter((point) => point.x > 0 && point.rate != null);
    const known = points.filter((point) => point.arm === "skill").length;
    if (known > 1 && known === rows.length) return { points, unit, write };
  }
  return null;
}

const PLANE_HEIGHT = 220;

function Frontier({ points, unit, write }) {
  const amounts = points.map((point) => point.x);
  const [low, high] = [Math.min(...amounts), Math.max(...amounts)];
  const isLog = high / low > 20;
  const share = isLog ? (x) => Math.log(x / low) / Math.log(high / low) : (x) => x / high;
  const at = (point) => ({ x: `${6 + 80 * share(point.x)}%`, y: 12 + PLANE_HEIGHT * (1 - point.rate) });
  const best = [...points].sort((a, b) => a.x - b.x || b.rate - a.rate)
    .filter((point, index, all) => all.slice(0, index).every((other) => other.rate < point.rate));
  const line = (from, to, kind) => html`<line class=${kind} x1=${from.x} y1=${from.y} x2=${to.x} y2=${to.y} />`;
  return html`<figure class="plane"><figcaption>Rate against ${unit}${isLog ? ", logarithmic" : ""}:
      hollow without the skill, filled with it; nothing is cheaper and better than the dashed line
    </figcaption>
    <svg width="100%" height=${PLANE_HEIGHT + 36} role="img" aria-label=${points.map((point) => `${
      point.label} ${armName(point.arm)}: ${write(point.x)}, ${format.percent(point.rate)}`).join("; ")}>
      ${[0, 0.5, 1].map((rate) => html`<g key=${rate}>${line({ x: "6%", y: at({ x: high, rate }).y },
        { x: "100%", y: at({ x: high, rate }).y }, "axis")}
        <text x="0" y=${at({ x: high, rate }).y + 4}>${format.percent(rate)}</text></g>`)}
      ${[...new Set([low, high])].map((x) => html`<text key=${x} x=${at({ x, rate: 0 }).x} text-anchor="middle"
        y=${PLANE_HEIGHT + 30}>${write(x)}</text>`)}
      ${best.slice(1).map((point, index) => html`<g key=${index}>
        ${line(at(best[index]), { x: at(point).x, y: at(best[index]).y }, "frontier")}
        ${line({ x: at(point).x, y: at(best[index]).y }, at(point), "frontier")}</g>`)}
      ${[...groupBy(points, (point) => point.label).values()].filter((pair) => pair.length > 1)
        .map(([first, second]) => html`<g key=${first.label}>${line(at(first), at(second), "joint")}</g>`)}
      ${points.map((point) => html`<g key=${point.label + point.arm}>
        <circle class=${point.arm === "skill" ? "with" : "without"} cx=${at(point).x} cy=${at(point).y} r="5" />
        ${point.arm === "skill" ? html`<text class="name" x=${at(point).x} dx="9" y=${at(point).y + 4}>${point.label}</text>`
          : null}</g>`)}
    </svg></figure>`;
}
