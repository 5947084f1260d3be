// What checks found in an answer, marked where it stands.
// Text from outside is only ever set as text, never as markup.

const MOST_TOLD = 3; // checks that a mark names

/** The pieces of an answer that checks found, in order; none overlaps another. */
function marksOf(trial) {
  const ends = trial.checks.flatMap(([, , , places], check) =>
    ["found", "unwanted"].flatMap((kind) => endsOf(places?.[kind] ?? [], check, kind)));
  ends.sort((one, two) => one.place - two.place);
  const open = new Map(); // how often each check is inside of one of its places
  const begun = new Set(); // checks of which a place starts at `start`
  const marks = [];
  let start = 0;
  for (const { place, step, check, kind } of ends) {
    if (open.size && place > start) {
      const checks = [...new Set([...open.keys()].map((key) => parseInt(key, 10)))];
      const unwanted = [...open.keys()].some((key) => key.endsWith("unwanted"));
      marks.push({ start, stop: place, checks, starts: [...begun], unwanted });
      begun.clear();
    }
    start = place;
    if (step > 0) begun.add(check);
    const key = `${check} ${kind}`;
    const depth = (open.get(key) ?? 0) + step;
    if (depth) open.set(key, depth);
    else open.delete(key);
  }
  return marks;
}

function endsOf(places, check, kind) {
  const ends = [];
  for (let i = 0; i + 1 < places.length; i += 2) {
    if (places[i] >= places[i + 1]) continue;
    ends.push({ place: places[i], step: 1, check, kind }, { place: places[i + 1], step: -1, check, kind });
  }
  return ends;
}

/** Writes parts of a text into elements, with its marks; `hides` tells if it left out one. */
function inkFor(text, marks = [], trial = null) {
  const seen = new Set();
  const write = (parent, start, stop) => {
    let at = start;
    for (let n = firstMark(marks, start); n < marks.length && marks[n].start < stop; n++) {
      const [first, last] = [Math.max(marks[n].start, at), Math.min(marks[n].stop, stop)];
      if (first > at) parent.append(text.slice(at, first));
      const starts = seen.has(n) ? [] : marks[n].starts;
      if (first < last) parent.append(markElement(text.slice(first, last), { ...marks[n], starts }, trial));
      if (text.slice(first, last).trim()) seen.add(n);
      at = Math.max(at, last);
    }
    if (at < stop) parent.append(text.slice(at, stop));
  };
  return { text, write, hides: () => seen.size < marks.length };
}

/** The first mark that ends after a place. */
function firstMark(marks, place) {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].stop > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

function markElement(text, { checks, starts, unwanted }, trial) {
  const told = checks.slice(0, MOST_TOLD).map((check) => {
    const [mark, name, reason] = trial.checks[check];
    return `${mark} ${name}: ${reason}`;
  });
  if (checks.length > MOST_TOLD) told.push(`and ${counted(checks.length - MOST_TOLD, "more check")}`);
  return el("mark", {
    class: unwanted ? "unwanted" : "found", title: told.join("\n"),
    "data-checks": checks.join(" "), "data-starts": starts.join(" "), tabindex: "-1",
  }, text);
}

/** What the marks of an answer mean, if it has any. */
function markLegend(marks) {
  const kinds = [[false, "found", "found by a check"], [true, "unwanted", "must not be there"]]
    .filter(([unwanted]) => marks.some((mark) => mark.unwanted === unwanted))
    .map(([, kind, words]) => el("span", { class: `key ${kind}` }, words));
  return kinds.length ? el("p", { class: "facts mark-legend" }, "Marked: ", ...kinds) : null;
}

/** Beside a check: the way to its places in the answer, or that there is none. */
function placesOf(trial, check, visit) {
  const places = trial.checks[check][3];
  if (!places) return null;
  if (places.missing) return el("span", { class: "tag missing" }, "missing");
  const count = ((places.found?.length ?? 0) + (places.unwanted?.length ?? 0)) / 2;
  const kind = places.unwanted?.length ? "unwanted" : "found";
  const hidden = places.hidden
    ? el("span", { class: "tag" }, `${counted(places.hidden, "place")} in what is left out`) : null;
  const box = el("span", { class: "places" });
  if (count) {
    let next = 0;
    box.append(button(counted(count, "place"),
      { class: `to-place ${kind}`, "aria-label": `Go to ${counted(count, "place")} in the answer` },
      () => { next = visit(check, next); }));
  }
  box.append(hidden ?? "");
  return box;
}
