// Which skill each query opens. In the address, `route` is the row whose queries are shown: that of a skill, or of the table.

const MOST_SKILLS = 16; // shown before those with nothing wrong are folded, also in the table

SECTIONS.routing = function RoutingView({ section: routing, number, about, address }) {
  const [last, ...others] = [...routing.conclusions].reverse();
  const idOf = (kind, name) => `${number}.${kind}.${name}`;
  const chosen = address.get("route");
  const linkTo = (kind, name) => href({ route: chosen === idOf(kind, name) ? null : idOf(kind, name) });
  const bySkill = new Map(routing.by_skill.map((each) => [each.name, each]));
  const rows = textsOf(about.table).map((texts) => ({ ...bySkill.get(texts.skill), texts }));
  const wrong = rows.filter(({ recall, precision }) => recall?.rate < 1 || precision?.rate < 1);
  const [all, showAll] = useState(rows.length <= MOST_SKILLS);
  const shown = all ? rows : wrong;
  const label = `${about.title}: ${labelOf(routing)}`;
  const skill = rows.find((row) => chosen === idOf("skill", row.name));
  const row = Object.keys(routing.table.rows).find((name) => chosen === idOf("row", name));
  const ofSkill = ({ name }) => routing.queries.filter((query) => query.expected[0] === name || query.opened[name]);
  return html`<section class="study routing" aria-label=${label}>
    <h2>${about.title}</h2>
    <p class="facts"><span>${about.facts}</span><span>${routing.source}</span></p>
    <div class="selected"><p><b>${last}.</b></p>
      ${others.length ? html`<ul>${others.reverse().map((line) => html`<li key=${line}>${line}.</li>`)}</ul>` : null}</div>
    ${tests.length ? null : data.problems.map((line) => html`<p key=${line} class="problem">${line}</p>`)}
    <${Table} label=${`Skills: ${label}`} rows=${shown} columns=${skillColumns(rows, (name) => linkTo("skill", name))}
      keyOf=${(each) => each.name} hrefOf=${(each) => linkTo("skill", each.name)} current=${skill?.name ?? null} />
    ${shown.length < rows.length ? html`<p class="folded"><button type="button" class="plain"
      onClick=${() => showAll(true)}>${counted(rows.length - shown.length, "more skill")}</button>
      ${" "}with nothing wrong</p>` : null}
    ${skill ? html`<${RoutedQueries} title=${skill.name} words="queries that should open it, or did"
      queries=${ofSkill(skill)} />` : null}
    <p class="note">${about.legend}.</p>
    <${Confusions} routing=${routing} about=${about} label=${label} chosen=${row} linkTo=${(name) => linkTo("row", name)} />
    ${row === undefined ? null : html`<${RoutedQueries} title=${row} words="queries of this row"
      queries=${routing.queries.filter((query) => query.row === row)} />`}
  </section>`;
};

function skillColumns(rows, linkOf) {
  const share = (name) => ({ id: name, title: name, kind: "num span", cell: ({ [name]: value, texts }) => (value
    ? html`<b>${texts[name].split(" ")[0]}</b> <small>${texts[name].split(" ").slice(1).join(" ")}</small>` : DASH) });
  return [
    { id: "skill", title: "skill", kind: "name", cell: (row) => html`
      <a class="case-name" href=${linkOf(row.name)}>${row.name}</a>
      <small>${row.queries ? `${row.right} of ${counted(row.queries, "query")} right` : "no query is for it"}</small>` },
    { id: "plot", title: html`<${Scale} low="0%" title="recall" high="100%" />`, kind: "plot wide",
      cell: ({ recall }) => (recall ? html`<${Dumbbell} baseline=${null} skill=${recall.rate}
        low=${recall.interval.low} high=${recall.interval.high} />` : null) },
    share("recall"), share("precision"),
    rows.some((row) => row.texts["opened instead"]) && { id: "instead", title: "opened instead", kind: "reason wide",
      cell: (row) => html`<span class="clamp">${Object.keys(row.instead).length ? row.texts["opened instead"] : ""}</span>` },
  ].filter(Boolean);
}

// What should be opened × what was opened first, in trials; a row leads to its queries.
function Confusions({ routing, about, label, chosen, linkTo }) {
  const { opened, rows } = routing.table;
  const wrong = new Set(about.wrong.map((pair) => JSON.stringify(pair)));
  const [all, showAll] = useState(opened.length <= MOST_SKILLS);
  const part = all ? routing.table : about.confused;
  const hidden = Object.keys(rows).length - Object.keys(part.rows).length;
  return html`<h3>Trials, by what should be opened and what was</h3>
    ${Object.keys(part.rows).length ? html`<div class="scroll" tabindex="0" role="region" aria-label=${`Confusions: ${label}`}>
      <table class="numbers confusions"><thead><tr><th scope="col">expected</th>${part.opened.map((name) => html`
        <th key=${name} scope="col" class="num"><span>${name}</span></th>`)}</tr></thead>
      <tbody>${Object.entries(part.rows).map(([name, runs]) => html`<tr key=${name} class=${name === chosen ? "current" : ""}
          onClick=${(event) => followRow(event, linkTo(name))}>
        <th scope="row"><a class="case-name" href=${linkTo(name)}>${name}</a></th>
        ${runs.map((number, index) => html`<td key=${index} class=${`num ${cellKind(number, wrong, name, part.opened[index])}`}
          title=${number ? `${name} → ${part.opened[index]}: ${counted(number, "trial")}` : null}>${number || ""}</td>`)}
      </tr>`)}</tbody></table></div>` : null}
    ${hidden ? html`<p class="folded"><button type="button" class="plain" onClick=${() => showAll(true)}>
      ${counted(hidden, "more row")}</button> where all is right</p>` : null}`;
}

function cellKind(number, wrong, row, column) {
  return number ? (wrong.has(JSON.stringify([row, column])) ? "bad" : "good") : "";
}

const ROUTED = { right: "good", missed: "bad", "wrong skill": "bad", "false alarm": "bad", error: "warn" };

function RoutedQueries({ title, words, queries }) {
  const columns = [
    { id: "outcome", title: "outcome", kind: "verdict", cell: ({ outcome }) => html`
      <${Word} word=${outcome} kind=${ROUTED[outcome]} />` },
    { id: "query", title: "query", kind: "name query", cell: (query) => html`
      <span class="case-name" title=${query.query}>${oneLine(query.query)}</span>
      <small><span class="narrow">${query.row} · </span>${query.place}</small>` },
    { id: "row", title: "expected", kind: "model wide", cell: (query) => query.row },
    { id: "opened", title: "opened", kind: "evidence", cell: (query) => html`<span class="clamp"
      title=${query.errors.join("\n")}>${openedWords(query)}</span>` },
  ];
  const place = useRef(null);
  useLayoutEffect(() => place.current.scrollIntoView({ block: "nearest" }), [title]);
  const rows = [...queries].sort((a, b) => (a.outcome === "right") - (b.outcome === "right"));
  return html`<div ref=${place} class="selected queries" role="region" aria-label=${`Queries: ${title}`}>
    <p><b>${title}</b> <small>${words}</small></p>
    <${Table} label=${`Queries: ${title}`} rows=${rows} columns=${columns} keyOf=${(query) => query.query} /></div>`;
}

function openedWords({ opened, unopened, also, errors }) {
  const runs = [...Object.entries(opened), ...(unopened ? [["(none)", unopened]] : [])];
  const words = runs.map(([name, number]) => `${name} ${number}`);
  const more = Object.keys(also);
  if (more.length) words.push(`then ${more.join(", ")}`);
  if (errors.length) words.push(`${counted(errors.length, "run")} without a result: ${errors[0]}`);
  return words.join(", ");
}
