// The first screen: whether the run passed and is complete, and a row for each skill on a model.

function Overview() {
  return html`<section class="overview"><h2>${data.outcome}</h2></section>`;
}
