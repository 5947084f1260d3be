// Small parts that all views share.

// Word({ word, kind, title }): a badge. `kind` is good, bad, warn, info or none.
function Word({ word, kind = kindOf(word), title = "" }) {
  return html`<span class="word ${kind}" title=${title}>${word}</span>`;
}

const KINDS = {
  good: ["helps", "passed", "better", "fixed", "rose", "no loss shown", "improved"],
  bad: ["hurts", "failed", "regressed", "worse", "broke", "fell"],
  warn: ["error", "incomplete", "not run", "flaky", "interrupted"],
  info: ["edited", "new", "answer", "gone"],
};
function kindOf(word) {
  const found = Object.entries(KINDS).find(([, words]) => words.includes(word));
  return found ? found[0] : "none";
}

const MARKS = {
  passed: "✔", failed: "✘", regressed: "▼", error: "!", accepted: "○", "not run": "–",
};
// Mark({ outcome }): the sign of an outcome, which is never told by its colour alone.
function Mark({ outcome }) {
  return html`<span class="mark ${kindOf(outcome)}" aria-hidden="true">${MARKS[outcome] ?? "·"}</span>`;
}

// Fold({ title, open, children }): closed until it is opened; its content is made only then.
function Fold({ title, open = false, children, kind = "" }) {
  const [isOpen, set] = useState(open);
  return html`<details class="fold ${kind}" open=${isOpen}
      onToggle=${(event) => set(event.currentTarget.open)}>
    <summary>${title}</summary>${isOpen ? children : null}</details>`;
}

// Copy({ text, label }): a button that copies a text.
function Copy({ text, label = "Copy" }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await copyText(text);
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<button type="button" class="copy" onClick=${copy}>${done ? "Copied" : label}</button>`;
}

// A page from disk may have no clipboard of its own.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// Tabs({ name, tabs: [[id, title, count], …], selected }): links; the choice is in the address.
function Tabs({ name, tabs, selected, label }) {
  return html`<nav class="tabs" aria-label=${label}>${tabs.map(([id, title, count]) => html`
    <a key=${id} href=${href({ [name]: id })} aria-current=${id === selected ? "true" : null}>
      ${title}${count == null ? null : html` <span class="count">${count}</span>`}</a>`)}</nav>`;
}

// Choice({ options: [[id, title], …], selected, choose, label }): buttons, one of them pressed.
function Choice({ options, selected, choose, label }) {
  return html`<span class="choice" role="group" aria-label=${label}>${options.map(([id, title]) => html`
    <button key=${id} type="button" aria-pressed=${id === selected}
      onClick=${() => choose(id)}>${title}</button>`)}</span>`;
}

// Dumbbell({ baseline, skill, previous, accepted, low, high }): rates from 0 to 1 on one line, with
// the interval of the rate with the skill; the accepted rate is a bar.
function Dumbbell({
  baseline = null, skill = null, previous = null, accepted = null, low = null, high = null,
}) {
  const at = (share) => `${4 + 92 * share}%`;
  const kind = baseline == null || skill == null || skill === baseline
    ? "same" : skill > baseline ? "gain" : "loss";
  return html`<svg class="dumbbell ${kind}" width="100%" height="24" aria-hidden="true">
    <line class="axis" x1=${at(0)} x2=${at(1)} y1="12" y2="12" />
    ${[0, 0.5, 1].map((share) => html`
      <line class="axis" key=${share} x1=${at(share)} x2=${at(share)} y1="9" y2="15" />`)}
    ${low == null ? null : html`<line class="interval" x1=${at(low)} x2=${at(high)} y1="12" y2="12" />`}
    ${baseline == null || skill == null ? null : html`
      <line class="way" x1=${at(baseline)} x2=${at(skill)} y1="12" y2="12" />`}
    ${accepted == null ? null : html`<line class="accepted" x1=${at(accepted)} x2=${at(accepted)} y1="3" y2="21" />`}
    ${previous == null ? null : html`<circle class="previous" cx=${at(previous)} cy="12" r="3.5" />`}
    ${baseline == null ? null : html`<circle class="without" cx=${at(baseline)} cy="12" r="4.5" />`}
    ${skill == null ? null : html`<circle class="with" cx=${at(skill)} cy="12" r="5" />`}
  </svg>`;
}

// Interval({ value, low, high, limit }): a point and its interval around 0, from -limit to limit.
function Interval({ value, low, high, limit = 1 }) {
  const at = (share) => `${50 + (46 * Math.max(-limit, Math.min(limit, share))) / limit}%`;
  const kind = low > 0 ? "gain" : high < 0 ? "loss" : "same";
  return html`<svg class="interval-plot ${kind}" width="100%" height="24" aria-hidden="true">
    <line class="axis" x1="50%" x2="50%" y1="3" y2="21" />
    ${low == null ? null : html`<line class="interval" x1=${at(low)} x2=${at(high)} y1="12" y2="12" />`}
    ${value == null ? null : html`<circle class="with" cx=${at(value)} cy="12" r="4.5" />`}
  </svg>`;
}

// Table({ columns: [{ id, title, kind, cell: (row) => … }], rows, keyOf, hrefOf, label, current }):
// a sticky head and rows of 40 px, of which only those near the screen are drawn. A row with an
// address is a link as a whole; `kind` is a class of the column: num, name, reason, on. A table
// that needs at `least` more pixels than there are scrolls sideways.
const ROW_HEIGHT = 40;
const SPARE_ROWS = 12;

function Table({ columns, rows, keyOf: key, hrefOf = () => null, label, current = null, least = 0 }) {
  const body = useRef(null);
  const [isWide, setWide] = useState(false);
  const [[first, last], setRange] = useState([0, 60]);
  const update = useCallback(() => {
    if (!body.current) return;
    const { top } = body.current.getBoundingClientRect();
    const from = Math.max(0, Math.floor(-top / ROW_HEIGHT) - SPARE_ROWS);
    const to = Math.ceil((innerHeight - top) / ROW_HEIGHT) + SPARE_ROWS;
    setWide(least > body.current.closest(".frame").clientWidth);
    setRange((range) => (range[0] === from && range[1] === to ? range : [from, to]));
  }, [least]);
  useLayoutEffect(() => {
    update();
    addEventListener("scroll", update, { passive: true });
    addEventListener("resize", update);
    return () => {
      removeEventListener("scroll", update);
      removeEventListener("resize", update);
    };
  }, [update]);
  useLayoutEffect(update, [rows]);
  const [start, end] = [Math.min(first, rows.length), Math.min(last, rows.length)];
  // Of one cell: those of hidden columns would take room.
  const space = (count) => (count > 0
    ? html`<tr class="space" aria-hidden="true"><td
        style=${{ height: `${count * ROW_HEIGHT}px` }}></td></tr>` : null);
  const frame = isWide ? { tabindex: "0", role: "region", "aria-label": `${label}, scrolling sideways` } : {};
  return html`<div class=${isWide ? "frame wide" : "frame"} ...${frame}>
    <table class="rows" style=${{ minWidth: `${least}px` }} aria-label=${label} aria-rowcount=${rows.length + 1}>
    <thead><tr>${columns.map((column) => html`
      <th key=${column.id} scope="col" class=${column.kind ?? ""}>${column.title}</th>`)}</tr></thead>
    <tbody ref=${body}>
      ${space(start)}
      ${rows.slice(start, end).map((row, index) => html`
        <tr key=${key(row)} class=${key(row) === current ? "current" : ""}
            aria-rowindex=${start + index + 2} onClick=${(event) => followRow(event, hrefOf(row))}>
          ${columns.map((column) => html`
            <td key=${column.id} class=${column.kind ?? ""}>${column.cell(row)}</td>`)}
        </tr>`)}
      ${space(rows.length - end)}
    </tbody>
  </table></div>`;
}

// A click on a row follows its link, unless it is on a link of its own or selects text.
function followRow(event, address) {
  if (!address || event.target.closest("a, button, input, summary")) return;
  if (String(getSelection())) return;
  location.hash = address;
}

// The components of what features add: SECTIONS[feature]({ section, about, number, address }).
const SECTIONS = {};
