// What changed between two texts: lines first, then words inside lines that differ. The effort is
// bounded, so that no answer, however long, can hang the page.

const MOST_LETTERS = 50_000;
const MOST_CELLS = 3_000_000;
const ALIKE = 0.4; // the share that two passages must have in common to be compared by words
const ISLAND = 4; // fewer unchanged letters between two changes are part of the change

/** Pieces as [kind, text], of kind "same", "gone" or "new", and whether they are only rough. */
function difference(before, after) {
  const budget = { cells: MOST_CELLS, rough: false };
  const lines = aligned(linesOf(before), linesOf(after), budget);
  const pieces = [];
  for (let i = 0; i < lines.length; i++) {
    if (lines[i][0] === "gone" && lines[i + 1]?.[0] === "new") {
      replace(pieces, linesOf(lines[i][1]), linesOf(lines[i + 1][1]), budget);
      i += 1;
    } else {
      pieces.push(lines[i]);
    }
  }
  return { pieces, rough: budget.rough };
}

/** Lines that replace others: from both ends, those that are alike are compared by words. */
function replace(pieces, gone, come, budget) {
  let head = 0;
  let [goneEnd, comeEnd] = [gone.length, come.length];
  const tail = [];
  for (; head < Math.min(goneEnd, comeEnd); head++) {
    const words = byWords(gone[head], come[head], budget);
    if (!words) break;
    for (const piece of words) pieces.push(piece);
  }
  for (; head < Math.min(goneEnd, comeEnd); goneEnd--, comeEnd--) {
    const words = byWords(gone[goneEnd - 1], come[comeEnd - 1], budget);
    if (!words) break;
    tail.push(words);
  }
  add(pieces, "gone", gone.slice(head, goneEnd));
  add(pieces, "new", come.slice(head, comeEnd));
  for (const words of tail.reverse()) {
    for (const piece of words) pieces.push(piece);
  }
}

/** Each with its newline, the last one too, so that equal lines are equal anywhere. */
function linesOf(text) {
  return text ? `${text.slice(0, MOST_LETTERS).replace(/\n$/, "")}\n`.match(/[^\n]*\n/g) : [];
}

function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** Null if two passages have too little in common to be compared by words. */
function byWords(before, after, budget) {
  const pieces = [];
  const changed = { gone: "", new: "" };
  let same = 0;
  const close = () => {
    if (changed.gone) pieces.push(["gone", changed.gone]);
    if (changed.new) pieces.push(["new", changed.new]);
    Object.assign(changed, { gone: "", new: "" });
  };
  for (const [kind, text] of aligned(wordsOf(before), wordsOf(after), budget)) {
    if (kind !== "same") {
      changed[kind] += text;
    } else if ((changed.gone || changed.new) && text.trim().length < ISLAND) {
      changed.gone += text;
      changed.new += text;
    } else {
      close();
      pieces.push([kind, text]);
      same += text.length;
    }
  }
  close();
  return same >= ALIKE * Math.max(before.length, after.length) ? pieces : null;
}

/** The longest common subsequence of two lists, as pieces. */
function aligned(one, two, budget) {
  let head = 0;
  let oneEnd = one.length;
  let twoEnd = two.length;
  while (head < oneEnd && head < twoEnd && one[head] === two[head]) head += 1;
  while (oneEnd > head && twoEnd > head && one[oneEnd - 1] === two[twoEnd - 1]) {
    oneEnd -= 1;
    twoEnd -= 1;
  }
  const pieces = [];
  add(pieces, "same", one.slice(0, head));
  addMiddle(pieces, one.slice(head, oneEnd), two.slice(head, twoEnd), budget);
  add(pieces, "same", one.slice(oneEnd));
  return pieces;
}

function addMiddle(pieces, one, two, budget) {
  const width = two.length + 1;
  const cells = (one.length + 1) * width;
  if (one.length === 0 || two.length === 0 || cells > budget.cells) {
    budget.rough ||= one.length > 0 && two.length > 0;
    add(pieces, "gone", one);
    add(pieces, "new", two);
    return;
  }
  budget.cells -= cells;
  // lengths[i * width + j]: the longest common subsequence of one.slice(i) and two.slice(j).
  const lengths = new Uint16Array(cells);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = two.length - 1; j >= 0; j--) {
      const at = i * width + j;
      lengths[at] = one[i] === two[j]
        ? lengths[at + width + 1] + 1
        : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  let i = 0;
  let j = 0;
  while (i < one.length || j < two.length) {
    if (i < one.length && j < two.length && one[i] === two[j]) {
      add(pieces, "same", [one[i]]);
      i += 1;
      j += 1;
    } else if (i < one.length && (j === two.length
      || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      add(pieces, "gone", [one[i++]]);
    } else {
      add(pieces, "new", [two[j++]]);
    }
  }
}

function add(pieces, kind, texts) {
  if (texts.length === 0) return;
  const last = pieces.at(-1);
  if (last?.[0] === kind) {
    last[1] += texts.join("");
  } else {
    pieces.push([kind, texts.join("")]);
  }
}
