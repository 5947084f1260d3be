// One case, opened: its question, and for each run the answers of the arms and their checks.
// Text from outside is only ever set as text, never as markup.

const MOST_SHOWN = 20_000;
const MARKS = { passed: "✓", failed: "✗", errored: "!" };

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

function button(label, attributes, act) {
  return el("button", { type: "button", ...attributes, click: act }, label);
}

function openedCase(test) {
  const arms = ["baseline", "previous", "trace", "skill"].filter((arm) => trialsOf(test, arm).length);
  const runs = [...new Set(test.trials.map((trial) => trial.run))].sort((a, b) => a - b);
  const state = {
    run: runs.find((run) => trialOf(test, "skill", run)?.outcome !== "passed") ?? runs[0],
    left: arms[0],
    right: arms.at(-1),
    diff: false,
  };
  const body = el("div", { class: "runs" });
  const draw = () => body.replaceChildren(controls(test, arms, runs, state, draw), trials(test, state));
  if (arms.length) draw();
  else body.append(el("p", { class: "note" }, "This test did not run."));
  return el("div", { class: "opened" }, about(test), question(test), body);
}

function trialsOf(test, arm) {
  return test.trials.filter((trial) => trial.arm === arm).sort((a, b) => a.run - b.run);
}

function trialOf(test, arm, run) {
  return test.trials.find((trial) => trial.arm === arm && trial.run === run);
}

function about(test) {
  const facts = [
    test.place && el("code", {}, test.place),
    test.tags.length && `tags: ${test.tags.join(", ")}`,
    test.standing || (test.accepted && `accepted: ${test.accepted}`),
    test.new && "not accepted yet",
  ].filter(Boolean);
  const line = el("p", { class: "facts" });
  facts.forEach((fact, index) => line.append(index ? " · " : "", fact));
  const link = el("a", { href: `#${test.id}`, class: "link" }, "Link to this case");
  const said = el("span", { role: "status" });
  const copy = button("Copy link", {}, async () => {
    try {
      await navigator.clipboard.writeText(link.href);
      said.textContent = "copied";
    } catch {
      said.textContent = "not allowed here; copy the link by hand";
    }
  });
  return el("div", { class: "about" }, line, el("p", { class: "share" }, link, copy, said));
}

function question(test) {
  return el("section", {}, el("h3", {}, "Question"), longText(test.question, "not known"));
}

/** A text; of a very long one only the beginning, with a button that shows all. */
function longText(cut, otherwise) {
  if (cut == null || cut[0] === "") return el("p", { class: "note" }, cut == null ? otherwise : "empty");
  const [text, length] = cut;
  const shown = el("pre", { tabindex: "0" }, text.slice(0, MOST_SHOWN));
  const box = el("div", {}, shown);
  if (text.length > MOST_SHOWN) {
    const all = `Show all ${number(text.length)} characters`;
    box.append(button(all, { class: "more" }, (event) => {
      shown.textContent = text;
      event.target.remove();
    }));
  }
  if (length) {
    const note = `Cut to keep this file small: the whole text has ${number(length)} characters.`;
    box.append(el("p", { class: "note" }, note));
  }
  return box;
}

function controls(test, arms, runs, state, draw) {
  const set = (key, value, selector) => () => {
    state[key] = value;
    draw();
    document.getElementById(test.id)?.parentNode.querySelector(selector)?.focus();
  };
  const row = el("div", { class: "controls" });
  if (runs.length > 1) {
    row.append(group("Run", runs.map((run) => {
      const marks = arms.map((arm) => MARKS[trialOf(test, arm, run)?.outcome] ?? "–").join("→");
      return button(`${run} ${marks}`, { "aria-pressed": `${state.run === run}`, "data-run": run },
        set("run", run, `[data-run="${run}"]`));
    })));
  }
  if (arms.length > 2) {
    const named = arms.map((arm) => [arm, armName(arm, test.against)]);
    row.append(choice("Compare", named, state, "left", draw), choice("with", named, state, "right", draw));
  }
  if (arms.length > 1) {
    row.append(group("Show", [["answers", false], ["diff", true]].map(([label, diff]) =>
      button(label, { "aria-pressed": `${state.diff === diff}`, "data-show": label },
        set("diff", diff, `[data-show="${label}"]`)))));
  }
  return row;
}

function group(label, buttons) {
  return el("div", { class: "group", role: "group", "aria-label": label },
    el("span", { "aria-hidden": "true" }, label), ...buttons);
}

function choice(label, arms, state, key, draw) {
  const options = arms.map(([arm, name]) =>
    el("option", { value: arm, selected: state[key] === arm }, name));
  return el("label", {}, `${label} `, el("select", {
    change: (event) => {
      state[key] = event.target.value;
      draw();
    },
  }, ...options));
}

function armName(arm, ref) {
  const names = {
    baseline: "without the skill",
    previous: `with the skill at ${ref ?? "the git ref"}`,
    trace: "with a trace instead of the skill",
    skill: "with the skill",
  };
  return names[arm];
}

function trials(test, state) {
  const arms = [...new Set([state.left, state.right])];
  const pair = arms.map((arm) => [arm, trialOf(test, arm, state.run)]);
  const cards = pair.map(([arm, trial]) => card(armName(arm, test.against), trial, !state.diff));
  const box = el("div", {}, el("div", { class: "pair" }, ...cards));
  if (state.diff) box.append(diffOf(...pair.map(([, trial]) => trial?.answer?.[0] ?? "")));
  return box;
}

function card(title, trial, whole) {
  const head = el("h3", {}, title);
  if (!trial) {
    return el("section", { class: "card" }, head, el("p", { class: "note" }, "not asked in this run"));
  }
  const outcome = `${MARKS[trial.outcome]} ${trial.outcome}`;
  head.append(" ", el("span", { class: `outcome-word ${trial.outcome}` }, outcome));
  const checks = trial.checks.map(([mark, name, reason]) => el("li", { class: mark.toLowerCase() },
    el("b", {}, mark), el("span", {}, el("code", {}, name), " ", reason)));
  return el("section", { class: "card" }, head, el("p", { class: "facts" }, spent(trial)),
    ...activity(trial.activity),
    trial.error ? el("p", { class: "error" }, trial.error) : null,
    checks.length ? el("ul", { class: "checks" }, ...checks) : null,
    whole ? longText(trial.answer, "no answer") : null,
    whole && trial.files ? files(trial.files, trial.all_files) : null,
    whole && trial.transcript ? transcript(trial.transcript, trial.steps, trial.cut_after) : null);
}

function spent(trial) {
  const [input, output, cached] = trial.tokens;
  const score = trial.score;
  return [
    input != null && `${number(input)} tokens in`,
    cached ? `${number(cached)} of them cached` : null,
    output != null && `${number(output)} out`,
    trial.seconds != null && `${trial.seconds.toFixed(1)} s`,
    trial.cost && dollars(trial.cost),
    score != null && score > 0 && score < 1 && checksPassed(trial),
    trial.stored ? "from cache" : null,
  ].filter(Boolean).join(" · ");
}

/** With the share of their weight, unless all checks weigh the same. */
function checksPassed(trial) {
  const passed = trial.checks.filter(([mark]) => mark === "ok").length;
  const text = `${passed} of ${trial.checks.length} checks`;
  const weighed = Math.abs(passed / trial.checks.length - trial.score) > 0.005;
  return weighed ? `${text} (score ${trial.score.toFixed(2)})` : text;
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

function diffOf(before, after = "") {
  const { pieces, rough } = difference(before, after);
  const notes = [];
  if (before === after) notes.push("The answers are the same.");
  if (rough) notes.push("They differ too much to compare every word.");
  if (Math.max(before.length, after.length) > MOST_LETTERS) {
    notes.push(`Only the first ${number(MOST_LETTERS)} characters are compared.`);
  }
  const tags = { same: "span", gone: "del", new: "ins" };
  const shown = el("pre", { class: "diff", tabindex: "0" });
  for (const [kind, text] of pieces) shown.append(el(tags[kind], {}, text));
  return el("div", {}, notes.length ? el("p", { class: "note" }, notes.join(" ")) : null, shown);
}
