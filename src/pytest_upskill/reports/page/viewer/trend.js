// The trend over runs, on a page of its own: Trend({ trend }), of `trend_values` in comparing.py.

function Trend({ trend }) {
  return null;
}
