// The first screen: what the run says of each skill in a sentence, one plot of its models or one
// table of all skills, and what the cases say.

const MOST_PROBLEMS = 4;
const MEASURES = [
  { id: "rate", title: "Pass rate", write: format.percent, change: "lift" },
  { id: "cost", title: "Cost", write: format.dollars, unit: "$ per 1,000, " },
  { id: "tokens", title: "Tokens", write: format.whole },
  { id: "turns", title: "Turns", write: (turns) => turns?.toFixed(1) ?? DASH },
  { id: "seconds", title: "Time", write: format.seconds },
];
const rows = run.summary.filter((row) => row.cases || row.errored)
  .map((row) => ({ ...row, label: labelOf(row) }));
const testsOfRow = groupBy(tests, (test) => JSON.stringify([test.skill, test.label]));

// Whether cases fell, as one rule found it; the reasons of the run name them.
const isWorse = (row) => Boolean(row.accepted?.worse || row.comparisons.previous?.fallen);

function sinceWords(row) {
  const { lift, low, high } = row.comparisons.previous.lift;
  const change = `${format.points(lift)} points (${boundsOf(low, high, format.points)})`;
  return `${row.label} since ${row.against}: ${change}${row.comparisons.previous.fallen ? ", and cases fell" : ""}`;
}

// Of each skill its verdict over the models, and its rows; the worst first, as the answers are.
const answers = new Map(data.answers.map((answer, number) => [answer.skill, { ...answer, number }]));
const skills = [...groupBy(rows, (row) => row.skill)].map(([name, own]) => ({
  name, rows: own, over: run.verdicts.find(({ skill }) => skill === name) ?? own[0], answer: answers.get(name),
})).sort((a, b) => (a.answer?.number ?? 0) - (b.answer?.number ?? 0));

// The arm that the skill is compared with.
const otherArm = (row) => ("baseline" in row.arms ? "baseline"
  : Object.keys(row.comparisons)[0] ?? null);

function amountOf(row, arm, measure) {
  const amounts = row.arms[arm];
  if (!amounts) return null;
  if (measure.id === "rate") return row.score === "checks" ? amounts.score : amounts.rate;
  const amount = amounts[measure.id] ?? null;
  return measure.id === "cost" && amount != null ? 1000 * amount : amount;
}

// What the skill changes, with its interval, and whether that is shown: { text, low, high, kind }.
function changeOf(row, measure) {
  const comparison = row.comparisons?.[otherArm(row)];
  if (measure.id === "rate") {
    if (row.lift == null) return null;
    const kind = { helps: "good", hurts: "bad" }[row.verdict] ?? "none";
    return { text: format.points(row.lift), bounds: boundsOf(row.lift_low, row.lift_high, format.points), kind };
  }
  const found = comparison?.changes[measure.id];
  if (!found) return null;
  const { change, low, high } = found;
  const isShown = low != null && (low > 0 || high < 0);
  const kind = isShown ? (change < 0 ? "good" : "more") : "none";
  const write = (share) => `${format.points(share)}%`;
  return { text: write(change), bounds: boundsOf(low, high, write), kind };
}

const boundsOf = (low, high, write) => (low == null ? "" : `${write(low)} to ${write(high)}`);

function measureOf(address) {
  const known = MEASURES.filter((measure) => rows.some((row) => {
    const amount = amountOf(row, "skill", measure);
    return measure.id === "rate" ? amount != null : amount > 0;
  }));
  return [known, known.find(({ id }) => id === address.get("measure")) ?? known[0]];
}

function Overview({ address }) {
  const [known, measure] = measureOf(address);
  const chosen = address.getAll("skill");
  const shown = skills.filter(({ name }) => !chosen.length || chosen.includes(name));
  const isOne = shown.length === 1;
  return html`<section class="overview" aria-label="Answer">
    ${isOne ? html`<${Sentence} ...${shown[0]} />` : skills.length ? html`<${Headline} />` : null}
    <${Outcome} />
    ${skills.length > 1 && isOne ? html`<p class="note"><a href=${href({ skill: null, model: null })}>← All
      ${" "}${counted(skills.length, "skill")}</a></p>` : null}
    ${known.length > 1 ? html`<${Choice} label="What is shown" selected=${measure.id}
      options=${known.map(({ id, title }) => [id, title])}
      choose=${(id) => go({ measure: id === known[0].id ? null : id })} />` : null}
    ${!measure ? null : isOne ? html`<${Plot} ...${shown[0]} measure=${measure} address=${address} />`
      : null}
    ${data.blocks.map((block, index) => html`<${BlockView} key=${index} block=${block} />`)}
  </section>`;
}

// The verdict word is drawn, so it is not said again.
function Sentence({ name, rows: own, over, answer }) {
  const text = answer?.text ?? over.sentence;
  const start = `${over.verdict ?? name}: `;
  const words = text.includes(start) ? text.slice(text.indexOf(start) + start.length) : text;
  const since = own.filter((row) => row.comparisons.previous).map(sinceWords);
  return html`<p class="say">${skills.length > 1 ? html`<b>${name}</b> ` : null}
    ${over.verdict ? html`<${Word} word=${over.verdict} /> ` : null} ${words}</p>
    ${[answer?.chance, ...since].filter(Boolean).map((sentence) => html`<p key=${sentence} class="note">${sentence}</p>`)}`;
}

function Headline() {
  return html`<p class="say">${data.counts}</p>${data.chance ? html`<p class="note">${data.chance}</p>` : null}`;
}

// How the tests ended, and why the run fails or is incomplete.
function Outcome() {
  const [all, showAll] = useState(false);
  const shown = all ? data.problems : data.problems.slice(0, MOST_PROBLEMS);
  const sign = { failed: "✘", passed: "✔" }[data.outcome] ?? "!";
  const words = data.tests || (tests.length ? `${counted(tests.length, "test")}, none failed` : data.outcome);
  return html`<div class="outcome"><p><b class="state">${sign}</b> ${words}</p>
    ${shown.length ? html`<ul class="problems">${shown.map((text, index) => html`<li key=${index}>${text}</li>`)}
      ${shown.length < data.problems.length ? html`<li key="more"><button type="button" class="plain"
        onClick=${() => showAll(true)}>and ${format.whole(data.problems.length - shown.length)} more</button>
      </li>` : null}</ul>` : null}</div>`;
}

// One skill: a row for each model, and one for all.

function Plot({ rows: own, over, measure, address }) {
  const lines = own.map((row) => lineOfRow(row, measure));
  const known = lines.flatMap(({ from, to }) => [from, to]).filter((amount) => amount != null);
  const scale = measure.id === "rate" ? (share) => share : scaleOf(known);
  const [low, high] = measure.id === "rate" ? [0, 1] : scale.ends;
  const after = own.some((row) => otherArm(row)) ? "without → with" : "with the skill";
  const several = own.length > 1 && measure.id === "rate" && over.lift != null;
  const [before, now] = ["baseline", "skill"].map((arm) => meanOf(own.filter((row) => row.lift != null)
    .map((row) => amountOf(row, arm, measure))));
  const model = address.get("model");
  return html`<table class="plot" role="table" aria-label=${`${measure.title} by model`}>
    <thead role="rowgroup"><tr role="row">
      <th role="columnheader" scope="col" class="verdict">verdict</th>
      <th role="columnheader" scope="col" class="subject">model</th>
      <th role="columnheader" scope="col" class="line"><span class="scale"><span>${measure.write(low)}</span>
        <span>${measure.write(high)}</span></span></th>
      <th role="columnheader" scope="col" class="num both">${measure.unit}${after}</th>
      <th role="columnheader" scope="col" class="num change">${measure.change ?? "change"}</th>
      <th role="columnheader" scope="col" class="signals">what the cases say</th></tr></thead>
    <tbody role="rowgroup">
      ${lines.map((line) => html`<${PlotLine} key=${line.label} line=${line} scale=${scale} measure=${measure}
        isCurrent=${model === line.label} />`)}
      ${several ? html`<tr class="all" role="row">
        <td role="cell" class="verdict"><${Word} word=${wordOf(over)} /></td>
        <td role="cell" class="subject">all models</td>
        <td role="cell" class="line"><${Dumbbell} from=${before} to=${now} scale=${scale}
          kind=${changeOf(over, measure).kind} /></td>
        <td role="cell" class="num both">${measure.write(before)} → ${measure.write(now)}</td>
        <td role="cell" class="num change"><${Change} change=${changeOf(over, measure)} /></td>
        <td role="cell" class="signals"><${SignalBar} of=${own.flatMap((row) => ownTests(row))} /></td></tr>` : null}
    </tbody></table>
    ${own.filter((row) => own.length > 1 && row.label === model && row.sentence).map((row) => html`
      <p key=${row.label} class="note">${row.label}: ${row.sentence}</p>`)}`;
}

const meanOf = (amounts) => (amounts.some((amount) => amount == null) ? null
  : amounts.reduce((sum, amount) => sum + amount, 0) / amounts.length);
const wordOf = (of) => of.verdict ?? data.played[of.agent] ?? "no verdict";
const ownTests = (row) => testsOfRow.get(JSON.stringify([row.skill, row.label])) ?? [];

function lineOfRow(row, measure) {
  const arm = otherArm(row);
  return {
    label: row.label, row, from: arm && amountOf(row, arm, measure), to: amountOf(row, "skill", measure),
    change: changeOf(row, measure),
  };
}

function PlotLine({ line: { label, row, from, to, change }, scale, measure, isCurrent }) {
  const address = href(isCurrent ? { model: null } : { model: label });
  const both = [from, to].filter((amount) => amount != null).map(measure.write).join(" → ");
  return html`<tr role="row" class=${isCurrent ? "current" : ""} onClick=${(event) => followRow(event, address)}>
    <td role="cell" class="verdict"><${Word} word=${wordOf(row)} />
      ${isWorse(row) ? html` <${Word} word="worse" />` : null}</td>
    <td role="cell" class="subject"><a href=${address} title="Show only its cases"
      aria-current=${isCurrent ? "true" : null}>${label}</a></td>
    <td role="cell" class="line"><${Dumbbell} from=${from} to=${to} scale=${scale} kind=${change?.kind ?? "none"} /></td>
    <td role="cell" class="num both">${both || DASH}</td>
    <td role="cell" class="num change"><${Change} change=${change} /></td>
    <td role="cell" class="signals"><${SignalBar} of=${ownTests(row)} /></td></tr>`;
}

// From 0, or logarithmic where the amounts are far apart.
function scaleOf(amounts) {
  const positive = amounts.filter((amount) => amount > 0);
  const [low, high] = [Math.min(...positive), Math.max(...positive, 0)];
  const isLog = high / low > 20;
  const share = isLog ? (amount) => Math.log(amount / low) / Math.log(high / low) : (amount) => amount / (high || 1);
  share.ends = [isLog ? low : 0, high];
  return share;
}

// Dumbbell({ from, to, scale, kind }): thick and coloured only where a verdict shows the change.
function Dumbbell({ from, to, scale, kind }) {
  const at = (amount) => `${3 + 94 * Math.max(0, Math.min(1, scale(amount)))}%`;
  return html`<svg class="dumbbell ${kind}" width="100%" height="24" aria-hidden="true">
    <line class="axis" x1="3%" x2="97%" y1="12" y2="12" />
    ${from == null || to == null ? null : html`<line class="way" x1=${at(from)} x2=${at(to)} y1="12" y2="12" />`}
    ${from == null ? null : html`<circle class="without" cx=${at(from)} cy="12" r="4.5" />`}
    ${to == null ? null : html`<circle class="with" cx=${at(to)} cy="12" r="5" />`}</svg>`;
}

function Change({ change }) {
  if (!change) return DASH;
  return html`<b class=${`${change.kind}-text`}>${change.text}</b> <small>${change.bounds}</small>`;
}

// Many skills: a row for each, a column for each model.

function SkillTable({ address }) {
  const [, measure] = measureOf(address);
  if (!measure) return null;
  const models = [...new Set(skills.flatMap((skill) => skill.rows.map(({ label }) => label)))];
  const one = models.length === 1;
  const brief = briefNames(models);
  return html`<div class="scroll"><table class="skills" role="table" aria-label="Skills, the worst first">
    <thead role="rowgroup"><tr role="row">
      <th role="columnheader" scope="col" class="verdict">verdict</th>
      <th role="columnheader" scope="col" class="subject">skill</th>
      <th role="columnheader" scope="col" class="num change">${measure.change ?? "change"}</th>
      ${one ? null : models.map((label) => html`<th key=${label} role="columnheader" scope="col" class="num on"
        title=${label}>${brief.get(label)}</th>`)}
      <th role="columnheader" scope="col" class="signals">what the cases say</th></tr></thead>
    <tbody role="rowgroup">${skills.map((skill) => html`<${SkillLine} key=${skill.name} skill=${skill}
      models=${one ? [] : models} measure=${measure} />`)}</tbody></table></div>`;
}

function SkillLine({ skill: { name, rows: own, over }, models, measure }) {
  const address = href({ skill: name });
  const change = measure.id === "rate" || own.length === 1
    ? changeOf(measure.id === "rate" ? over : own[0], measure) : null;
  return html`<tr role="row" onClick=${(event) => followRow(event, address)}>
    <td role="cell" class="verdict"><${Word} word=${wordOf(over)} />
      ${own.some(isWorse) ? html` <${Word} word="worse" />` : null}</td>
    <td role="cell" class="subject"><a href=${address}>${name}</a></td>
    <td role="cell" class="num change"><${Change} change=${change} /></td>
    ${models.map((label) => {
      const row = own.find((each) => each.label === label);
      const own_change = row && changeOf(row, measure);
      return html`<td key=${label} role="cell" class="num on">${own_change
        ? html`<span class=${`${own_change.kind}-text`} title=${own_change.bounds}>${own_change.text}</span>` : DASH}</td>`;
    })}
    <td role="cell" class="signals"><${SignalBar} of=${own.flatMap(ownTests)} /></td></tr>`;
}

// SignalBar({ of }): how many tests say what, from good to bad; filled where the runs show it.
const BAR_ORDER = ["only with", "both pass", "mixed", "both fail", "only without"];
const classOf = (signal) => signal.replace(" ", "-");

function SignalBar({ of }) {
  const parts = BAR_ORDER.flatMap((signal) => [true, false].map((shown) => ({
    signal, shown, number: of.filter((test) => test.signal === signal && test.shown === shown).length,
  }))).filter(({ number }) => number);
  const total = parts.reduce((sum, { number }) => sum + number, 0);
  if (!total) return null;
  let start = 0;
  const words = BAR_ORDER.map((signal) => [signal, parts.filter((part) => part.signal === signal)
    .reduce((sum, { number }) => sum + number, 0)]).filter(([, number]) => number)
    .map(([signal, number]) => `${number} ${signal}`).join(", ");
  return html`<svg class="signal-bar" width="100%" height="14" role="img" aria-label=${words}><title>${words}</title>
    ${parts.map(({ signal, shown, number }) => {
      const x = start;
      start += (100 * number) / total;
      return html`<svg key=${signal + shown} x=${`${x}%`} width=${`${(100 * number) / total}%`} height="14">
        <rect class="${classOf(signal)} ${shown ? "filled" : ""}" x="1" y="1" height="12" /></svg>`;
    })}</svg>`;
}

// What features and studies found: BlockView({ block }), a `Block` of study_tables.py.

function BlockView({ block }) {
  const [last, ...others] = [...block.conclusions].reverse();
  return html`<section class="block" aria-label=${`${block.title}: ${block.facts}`}>
    <h2>${block.title}</h2><p class="facts"><span>${block.facts}</span></p>
    ${last ? html`<p><b>${last}.</b></p>` : null}
    ${others.length ? html`<ul>${others.reverse().map((line) => html`<li key=${line}>${line}.</li>`)}</ul>` : null}
    <${TextTable} contents=${block.table} label=${`Table: ${block.title}, ${block.facts}`} />
    ${block.legend ? html`<p class="note">${block.legend}.</p>` : null}</section>`;
}

// TextTable({ contents: { headers, rows }, label }): a small table of texts.
function TextTable({ contents, label }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="numbers">
    <thead><tr>${contents.headers.map((header, index) => html`
      <th key=${header} scope="col" class=${index ? "num" : ""}>${header}</th>`)}</tr></thead>
    <tbody>${contents.rows.map((cells, number) => html`<tr key=${number}>${cells.map((cell, index) => html`
      <td key=${index} class=${index ? "num" : ""}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}
