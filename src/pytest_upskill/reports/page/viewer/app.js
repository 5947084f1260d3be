// The layout: header, tabs, and the view that the address names.

function App() {
  const address = useAddress();
  if (data.trend) return html`<main><${Trend} trend=${data.trend} /></main>`;
  const test = testById.get(address.get("case"));
  if (test) {
    return html`<${Header} address=${address} /><main>
      <${CaseView} key=${test.id} test=${test} address=${address} /></main>`;
  }
  return html`<${Header} address=${address} /><main><${View} address=${address} /></main>`;
}

// The tabs of this page, each if there is something in it.
const views = [
  ["summary", "Summary", null, tests.length > 0 || !run?.studies.length,
    ({ address }) => html`<${Overview} /><${Cases} address=${address} />`],
  ["changes", "Changes", data.changes?.cases.length, Boolean(data.changes),
    () => html`<${Since} changes=${data.changes} />`],
  ["triggers", "Triggers", run?.trigger_summaries.length, Boolean(run?.trigger_summaries.length),
    ({ address }) => html`<${Triggers} address=${address} />`],
  ["studies", "Studies", run?.studies.length, Boolean(run?.studies.length),
    () => html`<${Studies} />`],
].filter(([, , , isThere]) => isThere);

function View({ address }) {
  const chosen = views.find(([id]) => id === address.get("view")) ?? views[0];
  return html`<${chosen[4]} address=${address} />`;
}

function Header({ address }) {
  const selected = address.get("view") ?? views[0][0];
  const tabs = views.map(([id, title, count]) => [id, title, count]);
  return html`<header class="top"><h1>${document.title.split(" · ")[0]}</h1>
    <${Tabs} name="view" tabs=${tabs} selected=${selected} label="Views" /></header>`;
}

// What breaks in a view is told, and leaves the others alone.
function Guarded() {
  const [error] = useErrorBoundary((problem) => console.error(problem));
  return error ? html`<p class="broken">This can't be shown: ${String(error)}</p>` : html`<${App} />`;
}

document.getElementById("app").replaceChildren();
render(html`<${Guarded} />`, document.getElementById("app"));
document.documentElement.dataset.ready = "yes";
