// The layout: header, tabs, and the view that the address names.

const KEY_HELP = [
  ["j, k", "next and previous case"], ["Enter", "open the case"], ["Esc", "close it; clear the filters"],
  ["/", "search"], ["?", "these keys"],
];

const studied = Boolean(run && (run.studies.length || run.sections.length));

// The tabs of this page, each if there is something in it, what it shows, and its tests in order.
const views = run ? [
  ["summary", "Summary", null, tests.length > 0 || !studied, ({ address }) => html`
    <${Overview} address=${address} />${tests.length ? html`<${Cases} address=${address} />` : null}`],
  ["changes", "Changes", allChanges.length, Boolean(data.changes),
    ({ address }) => html`<${Since} changes=${data.changes} address=${address} />`, changedTests],
  ["triggers", "Triggers", null, run.trigger_summaries.length > 0,
    ({ address }) => html`<${Triggers} address=${address} />`, queryTests],
  ["studies", "Studies", null, studied, ({ address }) => html`
    <${Studies} address=${address} />${run.sections.map((section, number) => html`
      <${SECTIONS[section.feature]} key=${`section ${number}`} section=${section} number=${number}
        about=${data.sections[number]} address=${address} />`)}`],
].filter(([, , , isThere]) => isThere) : [];

const viewOf = (address) => views.find(([id]) => id === (address.get("view") ?? data.view)) ?? views[0];

function App() {
  const address = useAddress();
  const [help, showHelp] = useState(false);
  useKeys({ "?": () => showHelp(!help) });
  const test = testById.get(address.get("case"));
  const view = viewOf(address);
  return html`
    <${Header} selected=${view?.[0]} />
    ${help ? html`<div class="keys" role="status"><dl>${KEY_HELP.map(([key, words]) => html`
      <div key=${key}><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl></div>` : null}
    <main>
      ${address.get("case") && !test && run ? html`<p class="nothing">This run has no such test.
        <a href=${href({ case: null })}>Show all tests</a></p>` : null}
      ${data.trend ? html`<${Trend} trend=${data.trend} address=${address} />`
        : test ? html`<${OpenCase} key=${test.id} test=${test} address=${address} />`
          : html`<${view[4]} key=${view[0]} address=${address} />`}
    </main>
    <${Footer} />`;
}

// Its neighbours in the view that it was opened from.
function aroundOf(test, address) {
  const order = viewOf(address)[5]?.(address, test) ?? [];
  const at = order.indexOf(test);
  if (at < 0) return neighboursOf(test, address);
  return { previous: order[at - 1]?.id ?? null, next: order[at + 1]?.id ?? null, at, of: order.length };
}

// A case takes the place of the tables, so that a link lands on it at any width.
function OpenCase({ test, address }) {
  const around = useMemo(() => aroundOf(test, address), [test, String(address)]);
  const close = () => go({ case: null, run: null, arm: null, show: null });
  const show = (id) => () => id && go({ case: id, run: null }, { replace: true });
  useKeys({ j: show(around.next), k: show(around.previous), Escape: close });
  useLayoutEffect(() => {
    lastOpened = testsOfCase.get(JSON.stringify([test.skill, test.case]))[0].id;
    scrollTo(0, 0);
  }, []);
  return html`<nav class="around" aria-label="Cases">
      <a href=${href({ case: null, run: null, arm: null, show: null })}>← ${viewOf(address)[0] === "summary" ? "All cases" : viewOf(address)[1]}</a>
      ${around.at < 0 ? null : html`<span>${around.at + 1} of ${format.whole(around.of)}</span>`}
      <a href=${around.previous ? href({ case: around.previous, run: null }) : null}
        aria-disabled=${around.previous ? null : "true"}>Previous <kbd>k</kbd></a>
      <a href=${around.next ? href({ case: around.next, run: null }) : null}
        aria-disabled=${around.next ? null : "true"}>Next <kbd>j</kbd></a></nav>
    <${CaseView} test=${test} address=${address} ...${around} />`;
}

function Header({ selected }) {
  const commit = run?.commit;
  const facts = run ? [
    format.day(run.started),
    commit ? html`<code>${commit.id.slice(0, 9)}</code>${commit.dirty ? " with uncommitted changes" : ""}` : null,
    tests.length ? `${counted(tests.length, "test")} on ${labels.length === 1 ? labels[0] : counted(labels.length, "model")}` : null,
    `took ${data.took}`,
    ...data.facts,
  ].filter(Boolean) : [];
  return html`<header class="top">
    <h1>${data.title}</h1>
    <p class="facts">${facts.map((fact, index) => html`<span key=${index}>${fact}</span>`)}</p>
    ${views.length > 1 ? html`<${Tabs} name="view" label="Views" selected=${selected}
      tabs=${views.map(([id, title, count]) => [id, title, count])} />` : null}
  </header>`;
}

function Footer() {
  const versions = Object.entries(run?.versions ?? {}).map((pair) => pair.join(" ")).join(" · ");
  return html`<footer>
    ${data.notes?.length ? html`<ul>${data.notes.map((note, index) => html`
      <li key=${index}>${note}</li>`)}</ul>` : null}
    ${run ? html`<p>Rates are means over cases; a lift is their difference in points, with its 95 %
      interval. Press <kbd>?</kbd> for keys.</p>` : null}
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
