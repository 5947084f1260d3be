// The table of cases × models, with filters and search.

function Cases({ address }) {
  return null;
}
