// The layout: header, tabs if something changed, and what the address names.

const KEY_HELP = [
  ["j, k", "next and previous case"], ["Enter", "open the case"], ["Esc", "close it; clear the filters"],
  ["/", "search"], ["?", "these keys"],
];

const isChangesView = (address) => allChanges.length > 0
  && (address.get("view") ?? data.view) === "changes";

function App() {
  const address = useAddress();
  const [help, showHelp] = useState(false);
  useKeys({ "?": () => showHelp(!help) });
  const test = testById.get(address.get("case"));
  const isMany = skills.length > 1 && !isFiltered(address);
  return html`
    <${Header} address=${address} />
    ${help ? html`<div class="keys" role="status"><dl>${KEY_HELP.map(([key, words]) => html`
      <div key=${key}><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl></div>` : null}
    <main>
      ${address.get("case") && !test ? html`<p class="nothing">This run has no such test.
        <a href=${href({ case: null })}>Show all tests</a></p>` : null}
      ${test ? html`<${OpenCase} key=${test.id} test=${test} address=${address} />`
        : isChangesView(address) ? html`<${Changes} address=${address} />`
          : html`<${Overview} address=${address} />
            ${tests.length ? html`<${Cases} address=${address}>
              ${isMany ? html`<${SkillTable} address=${address} />` : null}<//>` : null}`}
    </main>
    <${Footer} />`;
}

// Its neighbours in the list that it was opened from.
function aroundOf(test, address) {
  const order = isChangesView(address) ? changedTests(address) : [];
  const at = order.indexOf(test);
  if (at < 0) return neighboursOf(test, address);
  return { previous: order[at - 1]?.id ?? null, next: order[at + 1]?.id ?? null, at, of: order.length };
}

// A case takes the place of the tables, so that a link lands on it at any width.
function OpenCase({ test, address }) {
  const around = useMemo(() => aroundOf(test, address), [test, String(address)]);
  const closed = { case: null, run: null, arm: null, show: null };
  const show = (id) => () => id && go({ case: id, run: null }, { replace: true });
  useKeys({ j: show(around.next), k: show(around.previous), Escape: () => go(closed) });
  useLayoutEffect(() => {
    lastOpened = testsOfCase.get(caseKey(test))[0].id;
    scrollTo(0, 0);
  }, []);
  const step = (id, word, key) => html`<a href=${id ? href({ case: id, run: null }) : null}
    aria-disabled=${id ? null : "true"}>${word} <kbd>${key}</kbd></a>`;
  return html`<nav class="around" aria-label="Cases">
      <a href=${href(closed)}>← ${isChangesView(address) ? "Changes" : "All cases"}</a>
      ${around.at < 0 ? null : html`<span>${around.at + 1} of ${format.whole(around.of)}</span>`}
      ${step(around.previous, "Previous", "k")} ${step(around.next, "Next", "j")}</nav>
    <${CaseView} test=${test} address=${address} />`;
}

function Header({ address }) {
  const { commit } = run;
  const runs = Math.max(0, ...rows.map((row) => row.runs));
  const most = Math.max(0, ...rows.map((row) => row.cases));
  const models = labels.length === 1 ? ` on ${labels[0]}` : ` × ${counted(labels.length, "model")}`;
  const facts = [
    format.day(run.started),
    most ? `${counted(most, "case")} × ${counted(runs, "run")}${models}` : counted(tests.length, "test"),
    format.seconds(run.seconds),
    commit ? html`<code>${commit.id.slice(0, 9)}</code>${commit.dirty ? " with uncommitted changes" : ""}` : null,
  ].filter(Boolean);
  const changes = isChangesView(address);
  return html`<header class="top">
    <h1><a href="#">${run.skills.length === 1 ? run.skills[0].name : counted(run.skills.length, "skill")}</a></h1>
    <p class="facts">${facts.map((fact, index) => html`<span key=${index}>${fact}</span>`)}</p>
    ${allChanges.length ? html`<nav class="tabs" aria-label="Views">
      <a href=${href({ view: "summary", case: null, change: null })} aria-current=${changes ? null : "true"}>Results</a>
      <a href=${href({ view: "changes", case: null })} aria-current=${changes ? "true" : null}>Changes
        <span class="count">${allChanges.length}</span></a></nav>` : null}
  </header>`;
}

function Footer() {
  const versions = Object.entries(run.versions).map((pair) => pair.join(" ")).join(" · ");
  return html`<footer>
    ${data.notes.length ? html`<ul>${data.notes.map((note, index) => html`<li key=${index}>${note}</li>`)}</ul>` : null}
    <p>Rates are means over cases; a lift is their difference in points, with its 95 % interval.
      Thick and filled: shown by the runs; thin and hollow: could be chance. Press <kbd>?</kbd> for keys.</p>
    <p>${versions}</p></footer>`;
}

// What breaks is told.
function Guarded() {
  const [error] = useErrorBoundary((problem) => console.error(problem));
  return error ? html`<p class="nothing">This can't be shown: ${String(error)}</p>` : html`<${App} />`;
}

document.getElementById("app").replaceChildren();
render(html`<${Guarded} />`, document.getElementById("app"));
document.documentElement.dataset.ready = "yes";
