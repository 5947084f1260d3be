// An opened case: CaseView({ test, address, previous, next }). `test` is an entry of `tests`;
// address.get("run") and address.get("arm") say what is shown; `previous` and `next` are the ids of
// its neighbours in the table, or null. Links: href({ case: id, run: null }); close: href({ case: null }).

function CaseView({ test, address, previous, next }) {
  return html`<article class="case"><h2>${test.case} on ${test.label}</h2></article>`;
}
