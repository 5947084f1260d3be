// Matrix, parts and other studies: Studies({ address }). run.studies has them, data.studies their
// tables in words. `contrast` in the address is the one whose arms are shown.

const UNCHANGED = ["no change shown", "not known", "no loss shown"];
const MOST_CONTRASTS = 16; // shown before those without a change are folded

function Studies({ address }) {
  return html`${run.studies.map((study, number) => html`<${StudyView} key=${number} study=${study}
    number=${number} about=${data.studies[number]} address=${address} />`)}`;
}

function StudyView({ study, number, about, address }) {
  const [all, showAll] = useState(study.contrasts.length <= MOST_CONTRASTS);
  const texts = textsOf(about.table);
  const rows = study.contrasts.map((contrast, index) => ({ ...contrast, index, texts: texts[index] }));
  const changed = rows.filter((row) => !UNCHANGED.includes(row.word));
  const shown = all ? rows : changed.length ? changed : rows.slice(0, MOST_CONTRASTS);
  const idOf = (row) => `${number}.${row.index}`;
  const chosen = rows.find((row) => idOf(row) === address.get("contrast"));
  const [last, ...others] = [...study.conclusions].reverse();
  return html`<section class="study" aria-label=${`${study.title}: ${labelOf(study)}`}>
    <h2>${study.title}</h2>
    <p class="facts"><span>${about.facts}</span></p>
    ${study.failure ? html`<p class="problem">${study.failure}</p>` : null}
    ${study.error ? html`<p class="problem">${counted(study.errored, "trial")} without an answer: ${study.error}</p>` : null}
    ${last ? html`<div class="selected"><p><b>${last}.</b></p>
      ${others.length ? html`<ul>${others.reverse().map((line) => html`<li key=${line}>${line}.</li>`)}</ul>` : null}</div>` : null}
    <${Table} label=${`Contrasts: ${study.title}, ${labelOf(study)}`} rows=${shown} columns=${contrastColumns(rows, idOf)}
      keyOf=${idOf} hrefOf=${(row) => href({ contrast: chosen === row ? null : idOf(row) })}
      current=${chosen ? idOf(chosen) : null} />
    ${shown.length < rows.length ? html`<p class="folded"><button type="button" class="plain"
      onClick=${() => showAll(true)}>${counted(rows.length - shown.length, "more contrast")}</button>
      ${" "}${wordCounts(rows.filter((row) => !shown.includes(row)))}</p>` : null}
    ${chosen ? html`<${ArmsOf} contrast=${chosen} about=${about} />` : null}
    <p class="note">${about.legend}.</p>
    <${Fold} title="Numbers of each arm"><${TextTable} contents=${about.arms} label=${`Arms: ${study.title}, ${labelOf(study)}`} /><//>
  </section>`;
}

// The texts of a table's rows, by the names of its columns; columns without any are left out.
function textsOf({ headers, rows }) {
  return rows.map((cells) => Object.fromEntries(cells.map((cell, index) => [headers[index], cell])));
}

function contrastColumns(rows, idOf) {
  const lifts = rows.map((row) => row.lift).filter(Boolean);
  const limit = Math.max(0.1, ...lifts.flatMap(({ low, high }) => [-low, high]));
  const end = format.points(Math.ceil(20 * limit - 1e-9) / 20);
  const has = (name) => rows.some((row) => row.texts[name]);
  return [
    { id: "word", title: "verdict", kind: "verdict", cell: (row) => html`<${Word} word=${row.word} />` },
    { id: "name", title: "contrast", kind: "name", cell: (row) => html`
      <a class="case-name" href=${href({ contrast: idOf(row) })}>${row.name}</a>
      <small><span class="narrow">${row.texts.change ?? DASH} · </span>
        ${counted(row.cases, "case")}</small>` },
    { id: "plot", title: html`<${Scale} low=${end.replace("+", "-")} title="change" high=${end} />`, kind: "plot",
      cell: ({ lift }) => (lift ? html`<${Interval} value=${lift.lift} low=${lift.low} high=${lift.high}
        limit=${Math.ceil(20 * limit - 1e-9) / 20} />` : null) },
    { id: "change", title: "in points", kind: "num span wide", cell: (row) => row.texts.change ?? DASH },
    has("tokens") && { id: "tokens", title: "tokens", kind: "num span wide", cell: (row) => row.texts.tokens ?? DASH },
  ].filter(Boolean);
}

// The arms of a contrast: those that are added, and those that are taken away.
function ArmsOf({ contrast, about }) {
  const { headers, rows } = about.arms;
  const own = (names, sign) => names.map((name) => rows.find((cells) => cells[0] === name))
    .filter(Boolean).map(([name, ...cells]) => [`${sign} ${name}`, ...cells]);
  const contents = { headers, rows: [...own(contrast.plus, "+"), ...own(contrast.minus, "−")] };
  return html`<div class="selected" role="region" aria-label=${`Arms of ${contrast.name}`}>
    <p><b>${contrast.name}</b> <small>the scores of + less those of −, case by case</small></p><${TextTable} contents=${contents} label="Arms" /></div>`;
}

// TextTable({ contents: { headers, rows }, label }): a small table of texts.
function TextTable({ contents: { headers, rows }, label }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="numbers">
    <thead><tr>${headers.map((header, index) => html`
      <th key=${header} scope="col" class=${index ? "num" : ""}>${header}</th>`)}</tr></thead>
    <tbody>${rows.map((cells, number) => html`<tr key=${number}>${cells.map((cell, index) => html`
      <td key=${index} class=${index ? "num" : ""}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}
