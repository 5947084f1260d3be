// Markdown as elements: headings, paragraphs, lists, quotes, tables, code, emphasis. Links and
// images become text with their address, HTML stays text. What is shown is always a part of the
// source, so that marks can be drawn on it. Every step takes linear time, and nothing nests deeply:
// texts come from models, and may try to hang the page.

const MOST_RENDERED = 60_000; // characters; a longer text is shown raw
const MOST_ELEMENTS = 15_000;
const DEEPEST = 8; // blocks inside of blocks, and emphasis inside of emphasis
const MOST_COLUMNS = 40;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const QUOTE = /^ {0,3}>[ \t]?/;
const ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
const DASHES = /^:?-+:?$/;
const PUNCTUATION = /[!-/:-@[-`{-~]/;

/** An element with a text of Markdown; null if it is too long or too involved. */
function markdown(ink) {
  if (ink.text.length > MOST_RENDERED) return null;
  const box = el("div", { class: "markdown", tabindex: "0", role: "group", "aria-label": "Answer, rendered" });
  const page = { ink, left: MOST_ELEMENTS };
  addBlocks(page, box, linesIn(ink.text), 0);
  return page.left > 0 ? box : null;
}

/** Each line as its start and stop in the text. */
function linesIn(text) {
  const lines = [];
  for (let start = 0; start <= text.length;) {
    const found = text.indexOf("\n", start);
    const stop = found < 0 ? text.length : found;
    lines.push({ start, stop });
    start = stop + 1;
  }
  return lines;
}

function made(page, tag, attributes, ...children) {
  page.left -= 1;
  return el(tag, attributes, ...children);
}

function addBlocks(page, parent, lines, depth) {
  const text = (line) => page.ink.text.slice(line.start, line.stop);
  for (let at = 0; at < lines.length && page.left > 0;) {
    const line = text(lines[at]);
    const fence = FENCE.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) at = addFence(page, parent, lines, at, fence);
    else if (HEADING.test(line)) at = addHeading(page, parent, lines, at);
    else if (isRule(line)) at = addRule(page, parent, at);
    else if (QUOTE.test(line) && depth < DEEPEST) at = addQuote(page, parent, lines, at, depth);
    else if (ITEM.test(line) && depth < DEEPEST) at = addList(page, parent, lines, at, depth);
    else if (isTable(text, lines, at)) at = addTable(page, parent, lines, at);
    else if (/^(?: {4}|\t)/.test(line)) at = addIndented(page, parent, lines, at);
    else at = addParagraph(page, parent, lines, at);
  }
}

function isRule(line) {
  const marks = line.length < 200 ? line.replace(/[ \t]/g, "") : "";
  return marks.length > 2 && "-*_".includes(marks[0]) && marks === marks[0].repeat(marks.length);
}

function startsBlock(line) {
  return !line.trim() || FENCE.test(line) || HEADING.test(line) || isRule(line) || QUOTE.test(line)
    || ITEM.test(line);
}

function addRule(page, parent, at) {
  parent.append(made(page, "hr"));
  return at + 1;
}

function addHeading(page, parent, lines, at) {
  const line = page.ink.text.slice(lines[at].start, lines[at].stop);
  const [, marks] = HEADING.exec(line);
  let { start, stop } = lines[at];
  start += line.indexOf("#") + marks.length;
  const ending = / #+[ \t]*$/.exec(line.slice(-200));
  if (ending) stop -= ending[0].length;
  addInline(page, heading(page, parent, marks.length), [{ start: Math.min(start, stop), stop }]);
  return at + 1;
}

/** One level for all, below that of an answer: levels that a model left out confuse readers. */
function heading(page, parent, level) {
  const one = made(page, "h4", { class: `level-${level}` });
  parent.append(one);
  return one;
}

function addFence(page, parent, lines, at, [line, marks, info]) {
  const closes = (one) => {
    const words = page.ink.text.slice(one.start, one.stop).trim();
    return words.length >= marks.length && words === marks[0].repeat(words.length);
  };
  const indent = line.length - line.trimStart().length;
  let end = at + 1;
  while (end < lines.length && !closes(lines[end])) end += 1;
  const stop = lines[at].stop - (info.length - info.trimEnd().length);
  const first = stop - info.trim().length;
  const name = page.ink.text.slice(first, stop).search(/[\s{]/);
  addCode(page, parent, lines.slice(at + 1, end).map((one) => unindented(page, one, indent)),
    { start: first, stop: name < 0 ? stop : first + name });
  return end + 1;
}

function unindented(page, { start, stop }, most) {
  let cut = 0;
  while (cut < most && page.ink.text[start + cut] === " " && start + cut < stop) cut += 1;
  return { start: start + cut, stop };
}

function addIndented(page, parent, lines, at) {
  const belongs = (one) => /^(?: {4}|\t|[ \t]*$)/.test(page.ink.text.slice(one.start, one.stop));
  let end = at;
  while (end < lines.length && belongs(lines[end])) end += 1;
  let last = end;
  while (!page.ink.text.slice(lines[last - 1].start, lines[last - 1].stop).trim()) last -= 1;
  const cut = (one) => (page.ink.text[one.start] === "\t"
    ? { start: one.start + 1, stop: one.stop } : unindented(page, one, 4));
  addCode(page, parent, lines.slice(at, last).map(cut), null);
  return end;
}

/** Code with its language, and a button that copies it. */
function addCode(page, parent, lines, language) {
  const { ink } = page;
  const code = made(page, "code");
  lines.forEach((line, number) => {
    if (number) code.append("\n");
    ink.write(code, line.start, line.stop);
  });
  const name = made(page, "span", { class: "language" });
  if (language) ink.write(name, language.start, language.stop);
  if (!name.textContent) name.append("text");
  const text = lines.map((line) => ink.text.slice(line.start, line.stop)).join("\n");
  parent.append(made(page, "div", { class: "code" },
    el("div", { class: "code-head" }, name, copier("Copy", () => text, "Copy this code")),
    made(page, "pre", { tabindex: "0" }, code)));
}

function addQuote(page, parent, lines, at, depth) {
  const inside = [];
  let end = at;
  for (; end < lines.length; end++) {
    const line = page.ink.text.slice(lines[end].start, lines[end].stop);
    const mark = QUOTE.exec(line);
    if (!mark && (startsBlock(line) || !page.ink.text.slice(inside.at(-1).start, inside.at(-1).stop).trim())) break;
    inside.push({ start: lines[end].start + (mark?.[0].length ?? 0), stop: lines[end].stop });
  }
  const quote = made(page, "blockquote");
  parent.append(quote);
  addBlocks(page, quote, inside, depth + 1);
  return end;
}

function addList(page, parent, lines, at, depth) {
  const text = (line) => page.ink.text.slice(line.start, line.stop);
  const bullet = ITEM.exec(text(lines[at]))[1];
  const isNumber = /\d/.test(bullet);
  const list = made(page, isNumber ? "ol" : "ul", isNumber && parseInt(bullet, 10) !== 1
    ? { start: parseInt(bullet, 10) } : {});
  parent.append(list);
  while (at < lines.length && page.left > 0) {
    const line = text(lines[at]);
    const mark = ITEM.exec(line);
    if (!mark || isRule(line) || /\d/.test(mark[1]) !== isNumber) break;
    const spaces = /^[ \t]{1,4}(?=\S)/.exec(line.slice(mark[0].length))?.[0].length ?? 0;
    const width = Math.min(mark[0].length + spaces, line.length);
    const inside = [{ start: lines[at].start + width, stop: lines[at].stop }];
    let blank = false;
    for (at += 1; at < lines.length; at++) {
      const next = text(lines[at]);
      const indent = next.length - next.trimStart().length;
      const isBlank = !next.trim();
      if (!isBlank && indent < Math.min(width, 2) && (blank || startsBlock(next))) break;
      if (!isBlank && indent < width && ITEM.test(next)) break;
      inside.push(unindented(page, lines[at], width));
      blank = isBlank;
    }
    const item = made(page, "li");
    list.append(item);
    addBlocks(page, item, inside, depth + 1);
  }
  return at;
}

// Tables.

/** The parts of a row between its bars. */
function cellsOf(page, { start, stop }) {
  const { text } = page.ink;
  while (start < stop && " \t".includes(text[start])) start += 1;
  while (stop > start && " \t".includes(text[stop - 1])) stop -= 1;
  if (text[start] === "|" && start < stop) start += 1;
  if (text[stop - 1] === "|" && text[stop - 2] !== "\\" && start < stop) stop -= 1;
  const cells = [];
  for (let at = start, first = start; at <= stop && cells.length <= MOST_COLUMNS; at++) {
    if (at === stop || (text[at] === "|" && text[at - 1] !== "\\")) {
      cells.push({ start: first, stop: at });
      first = at + 1;
    }
  }
  return cells;
}

function isTable(text, lines, at) {
  if (at + 1 >= lines.length || !text(lines[at]).includes("|")) return false;
  const below = text(lines[at + 1]).trim();
  if (!/^[|:-]/.test(below) || !below.includes("-") || below.length > 2000) return false;
  const cells = below.replace(/^\||\|$/g, "").split("|");
  return cells.length <= MOST_COLUMNS && cells.every((cell) => DASHES.test(cell.trim()))
    && (cells.length > 1 || below.includes("|"));
}

function addTable(page, parent, lines, at) {
  const columns = cellsOf(page, lines[at]).length;
  // Not a table element: this may be inside of the table of cases, whose style and script have
  // their own idea of what a row is.
  const table = made(page, "div", { class: "table", role: "table" });
  const add = (line, role) => {
    const row = made(page, "div", { role: "row" });
    for (const cell of cellsOf(page, line).slice(0, columns)) {
      const one = made(page, "div", { role });
      addInline(page, one, [cell]);
      row.append(one);
    }
    table.append(row);
  };
  add(lines[at], "columnheader");
  for (at += 2; at < lines.length && page.left > 0; at++) {
    const line = page.ink.text.slice(lines[at].start, lines[at].stop);
    if (!line.includes("|") || startsBlock(line)) break;
    add(lines[at], "cell");
  }
  parent.append(made(page, "div", { class: "wide", tabindex: "0" }, table));
  return at;
}

// Text inside of a block.

function addParagraph(page, parent, lines, at) {
  const text = (line) => page.ink.text.slice(line.start, line.stop);
  let end = at + 1;
  while (end < lines.length && !startsBlock(text(lines[end])) && !UNDERLINE.test(text(lines[end]))
    && !isTable(text, lines, end)) end += 1;
  const own = lines.slice(at, end);
  if (end < lines.length && UNDERLINE.test(text(lines[end]))) {
    addInline(page, heading(page, parent, text(lines[end]).includes("=") ? 1 : 2), own);
    return end + 1;
  }
  const paragraph = made(page, "p");
  parent.append(paragraph);
  addInline(page, paragraph, own);
  return end;
}

/** Emphasis, code, links and escapes in some lines. */
function addInline(page, parent, lines) {
  const own = lines.map((line) => trimmed(page, line));
  const text = own.map(({ start, stop }) => page.ink.text.slice(start, stop)).join("\n");
  const begins = []; // where each line begins in `text`
  own.reduce((at, { start, stop }) => {
    begins.push(at);
    return at + stop - start + 1;
  }, 0);
  const parents = [parent];
  let [from, line] = [0, 0];
  const write = (stop) => {
    while (from < stop) {
      const move = own[line].start - begins[line];
      const last = Math.min(stop, own[line].stop - move);
      if (from < last) {
        page.ink.write(parents.at(-1), from + move, last + move);
        from = last;
      } else {
        parents.at(-1).append("\n");
        from += 1;
        line += 1;
      }
    }
  };
  for (const token of inlineTokens(text)) {
    write(token.start);
    from = token.stop;
    while (line + 1 < begins.length && begins[line + 1] <= from) line += 1;
    if (token.opens) {
      const inner = made(page, token.opens, { class: token.kind });
      if (token.kind === "address") parents.at(-1).append(" ");
      if (token.kind === "image") inner.append("image: ");
      parents.at(-1).append(inner);
      parents.push(inner);
    } else if (token.closes) {
      parents.pop();
    }
  }
  write(text.length);
}

function trimmed(page, { start, stop }) {
  const { text } = page.ink;
  while (start < stop && " \t".includes(text[start])) start += 1;
  while (stop > start && " \t".includes(text[stop - 1])) stop -= 1;
  return { start, stop };
}

/** Where markup stands in a text: it opens or closes an element, or is only left out. */
function inlineTokens(text) {
  const tokens = [];
  const emphases = []; // open ones
  const brackets = []; // likewise, with the number of emphases outside of each
  const ticks = tickRuns(text);
  const parens = { at: -2 };
  const special = /[\\`*_~[\]]/g;
  for (let found; (found = special.exec(text));) {
    const at = found.index;
    const letter = text[at];
    let stop = at + 1;
    if (letter === "\\") {
      if (PUNCTUATION.test(text[stop] ?? "")) tokens.push({ start: at, stop: stop++ });
    } else if (letter === "`") {
      stop = addTicks(text, tokens, ticks, at);
    } else if (letter === "[") {
      brackets.push({ start: at, outside: emphases.length });
    } else if (letter === "]") {
      stop = addLink(text, tokens, brackets, emphases, at, parens);
    } else {
      while (text[stop] === letter) stop += 1;
      addEmphasis(text, tokens, emphases, brackets.at(-1)?.outside ?? 0, at, stop);
    }
    special.lastIndex = stop;
  }
  return tokens.sort((one, two) => one.start - two.start);
}

/** The places of runs of backticks, by their length. */
function tickRuns(text) {
  const runs = new Map();
  for (const { index, 0: { length } } of text.matchAll(/`+/g)) {
    if (!runs.has(length)) runs.set(length, { places: [], next: 0 });
    runs.get(length).places.push(index);
  }
  return runs;
}

function addTicks(text, tokens, ticks, at) {
  let stop = at + 1;
  while (text[stop] === "`") stop += 1;
  const runs = ticks.get(stop - at); // none if a backslash stands before the first backtick
  while (runs && runs.places[runs.next] < stop) runs.next += 1;
  const end = runs?.places[runs.next];
  if (end === undefined) return stop;
  tokens.push({ start: at, stop, opens: "code" }, { start: end, stop: end + stop - at, closes: true });
  return end + stop - at;
}

function addEmphasis(text, tokens, emphases, outside, at, stop) {
  const [letter, length] = [text[at], stop - at];
  if (length > 3 || (letter === "~" && length !== 2)) return;
  const [before, after] = [text[at - 1] ?? " ", text[stop] ?? " "];
  const free = (one) => /\s/.test(one);
  const loose = (one) => free(one) || PUNCTUATION.test(one);
  const left = !free(after) && (!PUNCTUATION.test(after) || loose(before));
  const right = !free(before) && (!PUNCTUATION.test(before) || loose(after));
  const inWord = letter === "_" && left && right;
  if (right && (!inWord || PUNCTUATION.test(after))) {
    for (let n = emphases.length - 1; n >= outside; n--) {
      const { start, stop: inner, letter: other } = emphases[n];
      if (other !== letter || inner - start !== length) continue;
      emphases.length = n;
      const opens = letter === "~" ? "s" : length === 1 ? "em" : "strong";
      tokens.push({ start, stop: inner, opens, kind: length === 3 ? "both" : null },
        { start: at, stop, closes: true });
      return;
    }
  }
  const opens = left && (!inWord || PUNCTUATION.test(before));
  if (opens && emphases.length < DEEPEST) emphases.push({ start: at, stop, letter });
}

/** A link is shown as its text and its address, and leads nowhere. */
function addLink(text, tokens, brackets, emphases, at, parens) {
  const opening = brackets.pop();
  if (!opening || text[at + 1] !== "(") return at + 1;
  const first = at + 2;
  if (parens.at !== -1 && parens.at < first) parens.at = text.indexOf(")", first);
  let end = parens.at;
  if (end < 0 || end - first > 2000) return at + 1;
  if (text.slice(first, end).includes("(") && text[end + 1] === ")") end += 1;
  brackets.length = 0; // no link inside of a link
  emphases.length = Math.min(emphases.length, opening.outside);
  const image = text[opening.start - 1] === "!" && text[opening.start - 2] !== "\\";
  const start = image ? opening.start - 1 : opening.start;
  tokens.push({ start, stop: opening.start + 1, opens: "span", kind: image ? "image" : "link" },
    { start: at, stop: first, closes: true });
  if (end > first) {
    tokens.push({ start: first, stop: first, opens: "code", kind: "address" },
      { start: end, stop: end + 1, closes: true });
  } else {
    tokens.push({ start: end, stop: end + 1 });
  }
  return end + 1;
}
