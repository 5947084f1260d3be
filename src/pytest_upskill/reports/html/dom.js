// Elements, and how numbers are written.
// Text from outside is only ever set as text, never as markup.

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null && child !== ""));
  return made;
}

function button(label, attributes, act) {
  return el("button", { type: "button", ...attributes, click: act }, label);
}

/** A button that copies a text, and what came of it. */
function copier(label, text, name = label) {
  const said = el("span", { role: "status", class: "said" });
  const copy = button(label, name === label ? {} : { "aria-label": name }, async () => {
    try {
      await navigator.clipboard.writeText(text());
      said.textContent = "copied";
    } catch {
      said.textContent = "not allowed here; select and copy it by hand";
    }
  });
  return el("span", { class: "copier" }, copy, said);
}

function group(label, buttons) {
  return el("div", { class: "group", role: "group", "aria-label": label },
    el("span", { "aria-hidden": "true" }, label), ...buttons);
}

function number(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 0 });
}

/** As `dollars` in Python. */
function dollars(amount) {
  if (amount > 0 && amount < 0.001) return "<$0.001";
  if (amount < 0.0995) return `$${Number(amount.toPrecision(2))}`;
  const digits = amount < 999.995 ? 2 : 0;
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `$${amount.toLocaleString("en", options)}`;
}

function counted(count, word) {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** A name that may go on in the next line after a separator, rather than within a word. As
`breakable` in Python. */
function breakable(name) {
  return name.split(/(?<=[^_/:.@=,\s]{3}[_/:.@=,])(?=[^_/:.@=,\s]{3})/)
    .flatMap((part, index) => (index ? [el("wbr"), part] : [part]));
}

function named(name) {
  return el("span", { class: "name" }, ...breakable(name));
}
