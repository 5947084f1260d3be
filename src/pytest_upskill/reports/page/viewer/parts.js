// Small parts that all views share.

// Word({ word, kind, title }): a badge. `kind` is good, bad, warn, info or none.
function Word({ word, kind = kindOf(word), title = "" }) {
  return html`<span class="word ${kind}" title=${title}>${word}</span>`;
}

const KINDS = {
  good: ["helps", "cheaper", "passed", "better", "fixed"],
  bad: ["hurts", "failed", "regressed", "worse", "broke"],
  warn: ["error", "incomplete", "nothing measured", "not run", "interrupted"],
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

// Choice({ options: [[id, title], …], selected, choose, label }): buttons, one of them pressed.
function Choice({ options, selected, choose, label }) {
  return html`<span class="choice" role="group" aria-label=${label}>${options.map(([id, title]) => html`
    <button key=${id} type="button" aria-pressed=${id === selected}
      onClick=${() => choose(id)}>${title}</button>`)}</span>`;
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
    const to = Math.max(0, Math.ceil((innerHeight - top) / ROW_HEIGHT) + SPARE_ROWS);
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
