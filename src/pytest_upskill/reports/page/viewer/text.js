// Text from models, tools and files: made visible, marked, rendered as Markdown, compared.
// It is hostile: it only becomes text nodes, or goes through DOMPurify. `html` makes all texts
// visible, but for those inside of lists and objects.

const MOST_SHOWN = 20_000; // characters of a text before "Show all"
const MOST_RENDERED = 30_000; // of Markdown
const MOST_MARKS = 1_000; // of a check
const MOST_COMPARED = 50_000;
const MOST_EDITS = 1_000; // lines that differ, before two texts are called different as a whole
const MOST_DIFF_ROWS = 1_000; // of a difference before "Show all"
const CONTEXT_LINES = 3; // around a change

/** On one line, at most `limit` characters. */
function oneLine(text, limit = 200) {
  const flat = visible(text.slice(0, 4 * limit)).replace(/\s+/g, " ").trim();
  return flat.length > limit ? `${flat.slice(0, limit - 1)}…` : flat;
}

// Marks: what checks found in an answer.

const NO_CHECKS = [];

/** A text as visible pieces in order, each with the checks that found it. */
function piecesOf(text, checks = []) {
  const ends = checks.flatMap((check, number) => ["found", "unwanted"].flatMap((kind) =>
    check[kind].slice(0, MOST_MARKS).filter(([start, stop]) => start < stop)
      .flatMap(([start, stop]) => [[start, 1], [stop, -1]])
      .map(([at, step]) => ({ at, step, number, kind }))));
  ends.sort((one, two) => one.at - two.at);
  const places = placesOf(text, ends.map(({ at }) => at));
  const open = new Map(); // how often each check is inside of one of its places
  const pieces = [];
  let starts = new Set();
  let from = 0;
  const close = (to) => {
    if (to <= from) return;
    const keys = [...open.keys()];
    pieces.push({
      text: visible(text.slice(from, to)),
      checks: [...new Set(keys.map((key) => parseInt(key, 10)))],
      unwanted: keys.some((key) => key.endsWith("unwanted")),
      starts: [...starts],
    });
    starts = new Set();
    from = to;
  };
  ends.forEach(({ step, number, kind }, index) => {
    close(places[index]);
    if (step > 0) starts.add(number);
    const key = `${number} ${kind}`;
    const depth = (open.get(key) ?? 0) + step;
    if (depth) open.set(key, depth);
    else open.delete(key);
  });
  close(text.length);
  return pieces;
}

/** From places in code points, in order, to places in the string. */
function placesOf(text, places) {
  if (!/[\ud800-\udbff]/.test(text)) return places.map((place) => Math.min(place, text.length));
  let [at, points] = [0, 0];
  return places.map((place) => {
    for (; points < place && at < text.length; points += 1) {
      at += text.codePointAt(at) > 0xffff ? 2 : 1;
    }
    return at;
  });
}

function markTitle(piece, checks) {
  return piece.checks.slice(0, 3).map((number) => {
    const { check, passed, reason } = checks[number];
    return `${passed ? "✔" : "✘"} ${check}: ${oneLine(reason)}`;
  }).join("\n");
}

function markProps(piece, checks) {
  return {
    class: piece.unwanted ? "unwanted" : "found",
    title: markTitle(piece, checks),
    "data-starts": piece.starts.join(" "),
    tabindex: "-1",
  };
}

// Marked({ record }) or Marked({ text }): a text as it is, with what checks found in it; of a very
// long one only the beginning, with a button for all.
function Marked({ record = null, text = record?.output, label = "Text" }) {
  const [all, showAll] = useState(false);
  const checks = record?.checks ?? NO_CHECKS;
  const pieces = useMemo(() => piecesOf(text ?? "", checks), [text, checks]);
  if (!text) return html`<p class="note">${text == null ? "not known" : "empty"}</p>`;
  let room = all ? Infinity : MOST_SHOWN;
  const shown = [];
  for (const piece of pieces) {
    const part = piece.text.slice(0, room);
    room -= part.length;
    const mark = () => html`<mark ...${markProps(piece, checks)}>${part}</mark>`;
    if (part) shown.push(piece.checks.length ? mark() : part);
  }
  return html`<pre class="text" tabindex="0" role="group" aria-label=${label}>${shown}</pre>
    ${room <= 0 && text.length > MOST_SHOWN ? html`
      <button type="button" class="more" onClick=${() => showAll(true)}>
        Show all ${format.whole(text.length)} characters</button>` : null}`;
}

// Markdown.

const escapeHtml = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
const markdown = new marked.Marked({
  gfm: true,
  renderer: {
    // As it was written.
    html: ({ text, block }) => (block ? `<p>${escapeHtml(text)}</p>` : escapeHtml(text)),
    image: ({ href, text }) => `<span class="image">image: ${escapeHtml(text || href)}</span>`,
    // No headings of the page.
    heading({ tokens, depth }) {
      return `<p class="heading level-${depth}">${this.parser.parseInline(tokens)}</p>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});
const ALLOWED = {
  ALLOWED_TAGS: ["p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "a",
    "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "span"],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
// What makes a parser slow, or nests too deep to read.
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+]|\d+[.)])){16}|^[ \t]{60,}[-*+>\d]/m;

function isRenderable(text) {
  return text.length <= MOST_RENDERED && !TOO_DEEP.test(text) && !/[*_~`[]{200}/.test(text)
    && text.split(/\n[ \t]*\n/).every((block) => (block.match(/[*_[<`]/g)?.length ?? 0) <= 1_500);
}

/** The nodes of a Markdown text with its marks, and whether all marks are in them; null if it
 *  can't be rendered. */
function rendered(pieces, checks) {
  const text = pieces.map((piece) => piece.text).join("");
  if (!isRenderable(text)) return null;
  try {
    const blocks = markdown.lexer(text);
    const nodes = DOMPurify.sanitize(markdown.parser(blocks), ALLOWED);
    for (const link of nodes.querySelectorAll("a")) {
      if (!link.hasAttribute("href")) link.replaceWith(...link.childNodes); // no address of the web
      else Object.assign(link, { rel: "noopener noreferrer", target: "_blank", title: link.href });
    }
    for (const wide of nodes.querySelectorAll("pre, table")) wide.tabIndex = 0;
    const ranges = rangesOf(pieces);
    if (ranges.length) markBlocks(nodes, text, blocks, ranges, checks);
    return { nodes: [...nodes.childNodes], complete: ranges.every(({ seen }) => seen) };
  } catch (error) {
    return null; // nested deeper than the stack
  }
}

/** The marked pieces of a text, and where they are; only white space needs no mark. */
function rangesOf(pieces) {
  let at = 0;
  const ranges = [];
  for (const piece of pieces) {
    if (piece.checks.length) {
      ranges.push({ start: at, stop: at + piece.text.length, piece, seen: !piece.text.trim() });
    }
    at += piece.text.length;
  }
  return ranges;
}

/** Each block of the source is an element, so that a word is looked for in its own block. */
function markBlocks(nodes, text, blocks, ranges, checks) {
  const elements = [...nodes.children];
  const shown = [];
  let at = 0;
  for (const { type, raw } of blocks) {
    if (type !== "space" && type !== "def") shown.push([at, at + raw.length]);
    at += raw.length;
  }
  if (shown.length !== elements.length) markNodes(nodes, text, 0, text.length, ranges, checks);
  else shown.forEach(([from, to], n) => markNodes(elements[n], text, from, to, ranges, checks));
}

/** Marks the parts of text nodes that are in ranges of the source. */
function markNodes(element, text, from, to, ranges, checks) {
  let next = ranges.findIndex(({ stop }) => stop > from);
  if (next < 0 || ranges[next].start >= to) return;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  let at = from;
  for (const node of nodes) {
    const pieces = []; // [text, range or null]
    // Words stand in the source in the same order, with markup between them.
    for (const [word] of node.data.matchAll(/[\p{L}\p{N}]+|\s+|[^\p{L}\p{N}\s]/gu)) {
      let start = /\s/.test(word) ? -1 : text.indexOf(word, at);
      if (start < 0 || start >= to) {
        pieces.push([word, null]);
        continue;
      }
      at = start + word.length;
      while (ranges[next]?.stop <= start) next += 1;
      for (let n = next; ranges[n]?.start < at; n += 1) {
        const [first, last] = [Math.max(ranges[n].start, start), Math.min(ranges[n].stop, at)];
        if (first > start) pieces.push([text.slice(start, first), null]);
        pieces.push([text.slice(first, last), ranges[n]]);
        start = last;
      }
      if (start < at) pieces.push([text.slice(start, at), null]);
    }
    if (pieces.some(([, range]) => range)) node.replaceWith(...markedNodes(pieces, checks));
  }
}

/** Neighbours in the same range are one mark, with the white space between them. */
function markedNodes(pieces, checks) {
  const made = [];
  let last = null;
  pieces.forEach(([words, own], index) => {
    const between = /^\s+$/.test(words) && last && pieces[index + 1]?.[1] === last;
    const range = own ?? (between ? last : null);
    if (range && range === last) {
      made.at(-1).append(words);
    } else if (range) {
      const mark = document.createElement("mark");
      const piece = range.seen ? { ...range.piece, starts: [] } : range.piece;
      for (const [name, value] of Object.entries(markProps(piece, checks))) {
        mark.setAttribute(name, visible(value));
      }
      mark.append(words);
      made.push(mark);
      range.seen = true;
    } else {
      made.push(words);
    }
    last = range;
  });
  return made;
}

// Markdown({ record }) or Markdown({ text }): rendered with what checks found, or as it is if that
// can't be.
function Markdown({ record = null, text = record?.output, label = "Text" }) {
  const checks = record?.checks ?? NO_CHECKS;
  const made = useMemo(() => rendered(piecesOf(text ?? "", checks), checks), [text, checks]);
  const box = useRef(null);
  useLayoutEffect(() => box.current?.replaceChildren(...(made?.nodes ?? [])), [made]);
  if (!text || !made) {
    return html`${text ? html`<p class="note">
        Shown raw: it is too long or too nested to be rendered.</p>` : null}
      <${Marked} record=${record} text=${record ? record.output : text} label=${label} />`;
  }
  return html`<div class="markdown" ref=${box} />
    ${made.complete ? null : html`<p class="note">
      Some of what checks found is markup, which only “raw” shows.</p>`}`;
}

// Differences.

/** Rows of a unified diff: [kind, parts], of kind "same", "gone" or "new"; a part is
 *  [text, changed]. */
function diffRows(before, after) {
  const [one, two] = [before, after]
    .map((text) => visible(text.slice(0, MOST_COMPARED)).replace(/\n?$/, "\n"));
  const hunks = Diff.diffLines(one, two, { maxEditLength: MOST_EDITS })
    ?? [{ removed: true, value: one }, { added: true, value: two }];
  const rows = [];
  hunks.forEach((hunk, index) => {
    const next = hunks[index + 1];
    if (hunk.removed && next?.added) {
      const words = alike(hunk.value, next.value);
      rows.push(...rowsOf("gone", words ?? [{ value: hunk.value }]));
      rows.push(...rowsOf("new", words ?? [{ value: next.value }]));
    } else if (!(hunk.added && hunks[index - 1]?.removed)) {
      const kind = hunk.added ? "new" : hunk.removed ? "gone" : "same";
      rows.push(...rowsOf(kind, [{ value: hunk.value }]));
    }
  });
  return rows;
}

/** The words that differ, unless most do. */
function alike(before, after) {
  const words = Diff.diffWordsWithSpace(before, after, { maxEditLength: 400 });
  const same = words?.filter(({ added, removed }) => !added && !removed)
    .reduce((sum, { value }) => sum + value.length, 0);
  return same >= 0.4 * Math.max(before.length, after.length) ? words : null;
}

function rowsOf(kind, words) {
  const rows = [[kind, []]];
  for (const { value, added, removed } of words) {
    if (kind === "gone" ? added : kind === "new" && removed) continue;
    value.split("\n").forEach((line, index) => {
      if (index) rows.push([kind, []]);
      if (line) rows.at(-1)[1].push([line, Boolean(added || removed)]);
    });
  }
  rows.pop(); // after the last newline
  return rows;
}

// TextDiff({ before, after, same }): line by line, with the words that differ; lines far from a
// change are folded. `same` is what to say if nothing differs.
function TextDiff({ before, after, same = "The answers are the same." }) {
  const rows = useMemo(() => diffRows(before ?? "", after ?? ""), [before, after]);
  const [open, setOpen] = useState(new Set());
  const [all, showAll] = useState(false);
  useEffect(() => setOpen(new Set()), [rows]);
  if (before === after) return html`<p class="note">${same}</p>`;
  const near = new Set();
  rows.forEach(([kind], index) => {
    if (kind === "same") return;
    for (let at = index - CONTEXT_LINES; at <= index + CONTEXT_LINES; at += 1) near.add(at);
  });
  const shown = [];
  for (let at = 0; at < rows.length; at += 1) {
    let end = at;
    while (end < rows.length && !near.has(end)) end += 1;
    if (end - at > 1 && !open.has(at)) {
      const start = at;
      shown.push(html`<button type="button" class="fold"
        onClick=${() => setOpen(new Set([...open, start]))}>
        ⋯ ${format.whole(end - at)} lines that are the same</button>`);
    } else {
      for (const row of rows.slice(at, Math.max(end, at + 1))) shown.push(diffRow(row));
    }
    at = Math.max(end - 1, at);
  }
  const long = Math.max(before?.length ?? 0, after?.length ?? 0) > MOST_COMPARED;
  return html`${long ? html`<p class="note">Only the first
      ${" "}${format.whole(MOST_COMPARED)} characters are compared.</p>` : null}
    <div class="diff" tabindex="0" role="group" aria-label="Differences">
      ${all ? shown : shown.slice(0, MOST_DIFF_ROWS)}</div>
    ${all || shown.length <= MOST_DIFF_ROWS ? null : html`
      <button type="button" class="more" onClick=${() => showAll(true)}>
        Show all ${format.whole(shown.length)} lines</button>`}`;
}

function diffRow([kind, parts]) {
  const tag = { same: "span", gone: "del", new: "ins" }[kind];
  const changed = parts.some(([, differs]) => differs);
  return html`<${tag} class="line">${parts.map(([text, differs]) =>
    (changed && differs ? html`<b>${text}</b>` : text))}${"\n"}</${tag}>`;
}
