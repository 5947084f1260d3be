// The keys of the page, and the help that lists them.

const KEYS = [
  ["j", "k", "next, previous case; if one is open, that one opens instead"],
  ["o", "Enter", "open or close the case"],
  ["/", "", "search"],
  ["?", "", "this help"],
  ["← ↑", "→ ↓", "from cell to cell in a grid; Enter opens the case"],
  ["Esc", "", "close this help"],
];
const help = el("dialog", { class: "help", "aria-labelledby": "help-title",
  click: (event) => event.target === help && help.close() },
el("div", {}, el("h2", { id: "help-title" }, "Keys"),
  el("dl", {}, ...KEYS.flatMap(([one, two, what]) => [
    el("dt", {}, el("kbd", {}, one), two && " ", two && el("kbd", {}, two)), el("dd", {}, what)])),
  el("p", { class: "note" }, "The address of the page keeps search, filters, order and the open case: "
    + "copy it to share what you see, go back to undo."),
  button("Close", {}, () => help.close())));
const helpButton = button("Keys ", { class: "keys", "aria-haspopup": "dialog" }, () => help.showModal());
helpButton.append(el("kbd", {}, "?"));
document.body.append(help);
document.querySelector(".filters > div:last-child").append(helpButton);

function currentCase() {
  const body = document.activeElement.closest(".cases tbody");
  return body ? tests.find((test) => test.body === body) : byId.get(address().at);
}

function step(by) {
  const shown = [...table.tBodies].filter((body) => !body.hidden);
  const current = currentCase();
  const at = shown.indexOf(current?.body);
  const next = at < 0 ? shown[0] : shown[at + by];
  if (!next) return;
  const test = tests.find((one) => one.body === next);
  const wasOpen = at >= 0 && current.body.rows.length > 1;
  if (wasOpen) {
    unfold(current, false);
    go({ at: test.id }, true);
    unfold(test, true);
  }
  next.scrollIntoView({ block: wasOpen ? "start" : "nearest" });
  next.querySelector(".open").focus({ preventScroll: true });
}

const ACTIONS = {
  j: () => step(1),
  k: () => step(-1),
  o: () => {
    const test = currentCase();
    if (test) toggle(test);
  },
  "/": () => search.focus(),
  "?": () => help.showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, [contenteditable]");
  if (typing || help.open || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
  const key = event.shiftKey ? event.key : event.key.toLowerCase();
  if (!Object.hasOwn(ACTIONS, key)) return;
  event.preventDefault();
  ACTIONS[key]();
});
