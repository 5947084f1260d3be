// Skills on an old model and on a new one.

const MODEL_CHANGE_KINDS = {
  "still helps": "good", "helps now": "good", helps: "good", "no longer needed": "info", "not needed": "info",
  better: "good", worse: "bad", "hurts now": "bad", hurts: "bad", "no longer helps": "warn", "lift fell": "warn", incomplete: "warn",
};

SECTIONS.drift = function ModelChangeView({ section: change, about }) {
  const [last, ...others] = [...change.conclusions].reverse();
  const bySkill = new Map(change.skills.map((skill) => [skill.skill, skill]));
  const rows = textsOf(about.table).map((texts) => ({ ...bySkill.get(texts.skill), texts }));
  const label = `${about.title}: ${change.agent}`;
  return html`<section class="study" aria-label=${label}>
    <h2>${about.title}</h2>
    <p class="facts"><span>${about.facts}</span></p>
    <div class="selected"><p><b>${last}.</b></p>
      <ul>${others.reverse().map((line) => html`<li key=${line}>${line}.</li>`)}</ul></div>
    ${data.problems.map((line) => html`<p key=${line} class="problem">${line}</p>`)}
    <${Table} label=${`Skills: ${label}`} rows=${rows} columns=${modelColumns(rows)} keyOf=${(row) => row.skill} />
    <p class="note">${about.legend}.</p>
    <${Fold} title="Scores without the skill and with it"><${TextTable} contents=${about.scores} label=${`Scores: ${label}`} /><//>
  </section>`;
};

function modelColumns(rows) {
  const text = (name, kind = "num span wide") => ({ id: name, title: name, kind, cell: ({ texts }) => texts[name] ?? DASH });
  return [
    { id: "word", title: "verdict", kind: "verdict", cell: ({ word }) => html`
      <${Word} word=${word} kind=${MODEL_CHANGE_KINDS[word] ?? "none"} />` },
    { id: "skill", title: "skill", kind: "name", cell: (row) => html`<span class="case-name">${row.skill}</span>
      <small><span class="narrow">${row.texts.change ?? DASH} · </span>
        ${counted(row.cases, "case")} × ${counted(row.runs, "run")}</small>` },
    { id: "plot", title: html`<${Scale} low="-200" title="change" high="+200" />`, kind: "plot",
      cell: ({ change }) => (change ? html`<${Interval} value=${change.lift} low=${change.low} high=${change.high} limit=${2} />` : null) },
    text("lift, old"), text("lift, new"), text("change"),
    rows.some((row) => row.broken.length) && text("broke", "num span"),
  ].filter(Boolean);
}
