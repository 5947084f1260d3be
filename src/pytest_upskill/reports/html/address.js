// What the reader looks at, kept in the fragment of the page's address: it can be linked to, gone
// back from, and survives a reload. First the id of what is looked at, then the rest as a query:
//
//   #case-wick-health-check-haiku-0a1b2c3d4e?run=2     #cases?state=failed&model=haiku     #triggers
//
// address()             what it says now: an object of texts. `at` is the id; no key is empty.
// go(changes, replace)  changes some keys; null or "" removes one. The reader can go back from it,
//                       unless `replace` is true: for typing, and for what happens often.
// follow(act)           calls act(now, before, moved) at once and after each change. `moved` is true
//                       if the browser came here: by loading, a link, back or forward.
//
// So a control only calls `go`, and what it changes is shown by who follows. `fragment(changes)` is
// the href of a link that does what `go` would do. Any key may be added; those in OF_CASE tell more
// about the case that is looked at, so they go when `at` changes.

const OF_CASE = ["run", "left", "right", "show"];
const followers = [];
let here = parsed(location.hash);
let written = location.hash;
let seen = location.hash;
let waiting = null;

function address() {
  return here;
}

function go(changes, replace = false) {
  const next = changed(changes);
  if (fragmentOf(next) === fragmentOf(here)) return;
  if (waiting && !replace) put("replaceState");
  clearTimeout(waiting);
  written = fragmentOf(next);
  // Browsers take only a few hundred changes in ten seconds: those that replace wait for a pause.
  if (replace) waiting = setTimeout(put, 150, "replaceState");
  else put("pushState");
  tell(next, false);
}

function follow(act) {
  followers.push(act);
  act(here, {}, true);
}

function fragment(changes) {
  return fragmentOf(changed(changes)) || "#";
}

function parsed(hash) {
  const [id, query = ""] = hash.slice(1).split(/\?(.*)/s);
  const said = Object.fromEntries(new URLSearchParams(query));
  try {
    return filled({ ...said, at: decodeURIComponent(id) });
  } catch {
    return filled({ ...said, at: null }); // no link of ours
  }
}

function filled(said) {
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value != null && value !== "")
    .map(([key, value]) => [key, `${value}`]));
}

function changed(changes) {
  const next = filled({ ...here, ...changes });
  const lost = next.at === here.at ? [] : OF_CASE.filter((key) => !(key in changes));
  for (const key of lost) delete next[key];
  return next;
}

function fragmentOf({ at = "", ...rest }) {
  const query = new URLSearchParams(rest).toString();
  return at || query ? `#${encodeURIComponent(at)}${query && `?${query}`}` : "";
}

/** `true` marks an entry of the history as ours; one without came from a link. */
function put(how) {
  clearTimeout(waiting);
  waiting = null;
  try {
    history[how](true, "", written || location.pathname + location.search);
  } catch {
    // Too many changes, or a frame that may not: the page works without.
  }
  seen = location.hash;
}

function tell(next, moved) {
  const before = here;
  here = next;
  for (const act of followers) act(here, before, moved);
}

function moved(event) {
  const linked = history.state == null;
  // Both events come; after `popstate`, the browser still moves the focus to where a link goes.
  if (location.hash === seen || (linked && event.type === "popstate")) return;
  seen = location.hash;
  clearTimeout(waiting);
  waiting = null;
  // A plain link to a place, such as those in the head, keeps filters.
  const plain = linked && !location.hash.includes("?");
  const next = plain ? changed({ at: parsed(location.hash).at }) : parsed(location.hash);
  written = location.hash;
  if (linked) {
    written = fragmentOf(next);
    put("replaceState");
  }
  tell(next, true);
  if (linked) arrive();
}

/** The browser does this by itself only if the fragment is nothing but an id, and what is looked
at was there when the page was loaded. */
function arrive() {
  const place = here.at && document.getElementById(here.at);
  if (!place || place.closest("tbody")) return; // whoever opens a case goes to it
  place.scrollIntoView();
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

addEventListener("popstate", moved);
addEventListener("hashchange", moved);
put("replaceState");
for (const link of document.querySelectorAll("a[data-filters]")) {
  link.setAttribute("href", `#cases?${link.dataset.filters}`);
}
