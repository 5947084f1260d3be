// What the page shows is in its address: #signal=both+fail&case=…&run=2. Links are plain
// links, the browser's back button works, and an address that is sent to others shows the same.
//
// Keys: view ("changes"), case (the id of an open test), run, show, arm, q (search), measure, sort,
// and the filters skill, model, outcome, signal, tag, change, each any number of times.

const parameters = () => new URLSearchParams(location.hash.slice(1));

// The address with some keys changed: a text, a list of texts, or null to leave it out.
// `href({case: test.id})` is for links within what is shown; `href(changes, true)` starts afresh.
function href(changes, afresh = false) {
  const next = afresh ? new URLSearchParams() : parameters();
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    for (const text of [value].flat()) if (text != null && text !== "") next.append(key, text);
  }
  return `#${next}`;
}

// Go there; `replace` leaves no entry in the history, as for every letter of a search.
function go(changes, { replace = false, afresh = false } = {}) {
  const address = href(changes, afresh);
  if (address === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("addresschange"));
}

// Listeners are layout effects: what is on the screen listens already, however late a frame is.

// A hook: `const address = useAddress()`, then `address.get("case")`, `address.getAll("model")`.
function useAddress() {
  const [address, set] = useState(parameters);
  useLayoutEffect(() => {
    const update = () => set(parameters());
    const events = ["hashchange", "popstate", "addresschange"];
    events.forEach((event) => addEventListener(event, update));
    return () => events.forEach((event) => removeEventListener(event, update));
  }, []);
  return address;
}

// Keys of one letter, unless somebody is typing: `useKeys({ j: next, Escape: close })`.
function useKeys(actions) {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => {
    const press = (event) => {
      const { target } = event;
      const typing = target.closest?.("input, textarea, select, [contenteditable]");
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (typing && event.key !== "Escape") return;
      if (event.key === "Enter" && target.closest?.("a, button, summary")) return;
      const action = Object.hasOwn(latest.current, event.key) && latest.current[event.key];
      if (!action) return;
      event.preventDefault();
      action(event);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
