// The trend over runs, on a page of its own: Trend({ trend, address }), of `trend_values` in
// comparing.py. `metric` in the address is what is drawn, `skill` which skills.

const COLOURS = 6; // of lines; further ones start again, with another shape for their points
const PLOT = { height: 300, left: 64, right: 16, top: 16, bottom: 84, least: 320 };
const MOST_LABELS = 24;

const short = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 1 });
const formatOf = (metric) => (metric.unit === "short" ? short : format[metric.unit]);

function Trend({ trend, address }) {
  const metric = trend.metrics.find(({ name }) => name === address.get("metric"))
    ?? trend.metrics.find(({ name }) => name === trend.metric) ?? trend.metrics[0];
  const skills = [...groupBy(trend.rows, (row) => row.skill)].sort(([a], [b]) => a.localeCompare(b));
  const bounded = trend.rows.some((row) => row.values[metric?.name]?.[1] != null);
  return html`
    ${trend.metrics.length > 1 ? html`<div class="metrics"><${Choice} label="Metric" selected=${metric.name}
      options=${trend.metrics.map(({ name }) => [name, name.replace("-", " ")])} choose=${(name) => go({ metric: name })} /></div>` : null}
    ${metric ? html`<p class="note">${metric.title}. ${bounded ? "Vertical lines are 95 % intervals. " : ""}
      A commit with a + had uncommitted changes; hollow points are runs of some of the cases only.</p>` : null}
    ${skills.map(([skill, rows]) => html`<section class="trend" key=${skill} aria-label=${skill}>
      <h2>${skill}</h2>
      ${metric ? html`<${TrendPlot} rows=${rows} metric=${metric} skill=${skill} />` : null}
      <${Table} label=${`Runs of ${skill}`} rows=${rows} columns=${trendColumns(trend)}
        keyOf=${(row) => `${row.run} ${row.label}`} /></section>`)}`;
}

function trendColumns(trend) {
  return [
    { id: "verdict", title: "verdict", kind: "verdict", cell: (row) => (row.verdict ? html`<${Word} word=${row.verdict} />` : DASH) },
    { id: "run", title: "run", kind: "name", cell: (row) => html`<span class="case-name">${row.label}</span>
      <small>${row.commit === "-" ? "" : `${row.commit} · `}${format.day(row.started)} · ${row.short || row.run}</small>` },
    { id: "cases", title: "cases", kind: "num short wide", cell: (row) => (row.subset
      ? html`<span class="warn-text">${row.cases}</span>` : row.cases) },
    ...trend.columns.map(([name, title], index) => ({ id: name, title,
      kind: `num ${name === "lift" ? "span" : `short ${index > 5 ? "middle" : "wide"}`}`, cell: (row) => {
        const [text, bounds] = row.texts[name];
        return text == null ? DASH : html`${text}${bounds ? html` <small>${bounds}</small>` : null}`;
      } })),
  ];
}

// The trend of a skill: a line for each model, with intervals, over its runs from old to new.
function TrendPlot({ rows, metric, skill }) {
  const box = useRef(null);
  const [width, setWidth] = useState(760);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(PLOT.least, Math.round(entry.contentRect.width))));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const known = rows.filter((row) => row.values[metric.name])
    .sort((a, b) => a.started.localeCompare(b.started) || a.run.localeCompare(b.run));
  if (!known.length) return html`<p class="note" ref=${box}>Not known of any run: ${metric.title}.</p>`;
  const runs = [...new Map(known.map((row) => [row.run, row])).values()];
  const lines = [...groupBy(known, (row) => row.label)];
  const numbers = known.flatMap((row) => row.values[metric.name]).filter((value) => value != null);
  const [low, high] = [Math.min(0, ...numbers), Math.max(metric.top ?? 0, ...numbers) || 1];
  const room = width - PLOT.left - PLOT.right;
  const at = new Map(runs.map((row, index) => [row.run, index]));
  const x = (row) => PLOT.left + (room * (at.get(row.run) + 0.5)) / runs.length;
  const y = (value) => PLOT.height - PLOT.bottom
    - ((value - low) / (high - low)) * (PLOT.height - PLOT.bottom - PLOT.top);
  const every = Math.ceil(runs.length / Math.min(MOST_LABELS, room / 26));
  // A few pixels apart, so that the intervals of models do not hide each other.
  const aside = (index) => (index - (lines.length - 1) / 2) * Math.min(5, room / runs.length / 2 / lines.length);
  return html`<div ref=${box}>
    ${lines.length > 1 ? html`<ul class="legend">${lines.map(([label], index) => html`<li key=${label}>
      <b class="c${index % COLOURS}" aria-hidden="true">${index < COLOURS ? "●" : "■"}</b> ${label}</li>`)}</ul>` : null}
    <svg class="trend-plot" viewBox="0 0 ${width} ${PLOT.height}" height=${PLOT.height} role="img"
        aria-label=${`${skill}: ${metric.title}, over ${counted(runs.length, "run")}; the table below has the numbers`}>
      ${ticks(low, high).map((value) => html`<g key=${value}>
        <line class=${value === 0 ? "zero" : "grid"} x1=${PLOT.left} x2=${width - PLOT.right} y1=${y(value)} y2=${y(value)} />
        <text class="tick" x=${PLOT.left - 8} y=${y(value) + 4}>${formatOf(metric)(value)}</text></g>`)}
      ${runs.map((row, index) => (index % every ? null : html`<text class="when" key=${row.run}
        transform="translate(${x(row)} ${PLOT.height - PLOT.bottom + 16}) rotate(-50)">
        ${row.commit === "-" ? row.started.slice(5, 16).replace("T", " ") : row.commit}</text>`))}
      ${lines.map(([label, own], index) => html`<${TrendLine} key=${label} rows=${own} metric=${metric} number=${index}
        x=${(row) => x(row) + aside(index)} y=${y} />`)}
    </svg></div>`;
}

function TrendLine({ rows, metric, number, x, y }) {
  const whole = rows.filter((row) => !row.subset); // a run of some cases says little about all
  return html`<g class="c${number % COLOURS}">
    <polyline points=${whole.map((row) => `${x(row)},${y(row.values[metric.name][0])}`).join(" ")} />
    ${rows.map((row) => {
      const [value, low, high] = row.values[metric.name];
      const [left, top] = [x(row), y(value)];
      const bounds = low == null ? "" : ` (${formatOf(metric)(low)} to ${formatOf(metric)(high)})`;
      return html`<g key=${row.run} class=${row.subset ? "some" : ""}>
        <title>${`${row.label}, ${row.commit}, ${row.short}: ${formatOf(metric)(value)}${bounds}`}</title>
        ${low == null ? null : html`<line class="interval" x1=${left} x2=${left} y1=${y(low)} y2=${y(high)} />`}
        ${number < COLOURS ? html`<circle cx=${left} cy=${top} r="4.5" />`
          : html`<rect x=${left - 4} y=${top - 4} width="8" height="8" />`}</g>`;
    })}</g>`;
}

// Round numbers between two others, about five of them.
function ticks(low, high) {
  const raw = (high - low) / 5;
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * base).find((size) => size >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}
