// One case, opened: its question, and for each run the answers of the arms and their checks.
// Text from outside is only ever set as text, never as markup.

const MOST_SHOWN = 20_000;
// What an opened case is made of, in order: other files add theirs.
const CASE_PARTS = [about, question, answers]; // (test) => element or null
const MARKS = { passed: "✓", failed: "✗", errored: "!" };
const OF_VIEW = ["run", "left", "right", "show"]; // keys of the address
const views = new Map(); // by the id of an opened case: (address) => shows what it says

function openedCase(test) {
  return el("div", { class: "opened" }, ...CASE_PARTS.map((part) => part(test)));
}

function answers(test) {
  const arms = [...new Set(test.trials.map((trial) => trial.arm))];
  const runs = [...new Set(test.trials.map((trial) => trial.run))].sort((a, b) => a - b);
  const body = el("div", { class: "runs" });
  if (!arms.length) return el("div", { class: "runs" }, el("p", { class: "note" }, "This test did not run."));
  const first = {
    run: runs.find((run) => trialOf(test, "skill", run)?.outcome !== "passed") ?? runs[0],
    left: arms[0],
    right: arms.at(-1),
    show: "answers",
  };
  const state = { ...first };
  const shows = ["answers", ...(arms.length > 1 ? ["diff"] : []), ...(skillFile(test.skill) ? ["skill"] : [])];
  const known = { run: runs, left: arms, right: arms, show: shows };
  const read = (now) => {
    for (const key of OF_VIEW) {
      state[key] = known[key].find((one) => `${one}` === now[key]) ?? first[key];
    }
  };
  const draw = () => body.replaceChildren(controls(test, known, state, set), trials(test, state, body));
  const set = (key, value, selector) => {
    state[key] = value;
    const told = OF_VIEW.map((one) => [one, state[one] === first[one] ? null : state[one]]);
    go({ ...Object.fromEntries(told), at: test.id });
    draw();
    body.querySelector(selector)?.focus();
  };
  views.set(test.id, (now, before) => {
    const own = now.at === test.id;
    const same = OF_VIEW.every((key) => !own || `${state[key]}` === (now[key] ?? `${first[key]}`));
    if (same && now.text === before.text) return;
    if (own) read(now);
    draw();
  });
  if (address().at === test.id) read(address());
  draw();
  return body;
}

follow((now, before) => {
  for (const [id, show] of views) {
    if (document.getElementById(id)?.parentNode.querySelector(".runs")) show(now, before);
    else views.delete(id);
  }
});

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
  const share = el("p", { class: "share" }, link, copier("Copy link", () => link.href));
  const command = test.command ? el("p", { class: "rerun" }, "Run it again: ",
    el("code", { class: "command" }, test.command), copier("Copy", () => test.command, "Copy the command")) : null;
  return el("div", { class: "about" }, line, share, command);
}

function question(test) {
  return el("section", {}, el("h3", {}, "Question"), longText(test.question, "not known"));
}

/** A text as it is; of a very long one only the beginning, with a button that shows all. */
function longText(cut, otherwise, marks, trial) {
  if (cut == null || cut[0] === "") return el("p", { class: "note" }, cut == null ? otherwise : "empty");
  const [text] = cut;
  const ink = inkFor(text, marks, trial);
  const shown = el("pre", { tabindex: "0" });
  ink.write(shown, 0, Math.min(text.length, MOST_SHOWN));
  const box = el("div", {}, shown);
  if (text.length > MOST_SHOWN) {
    const all = `Show all ${number(text.length)} characters`;
    box.append(button(all, { class: "more" }, (event) => {
      ink.write(shown, MOST_SHOWN, text.length);
      event.target.remove();
    }));
  }
  box.append(cutNote(cut) ?? "");
  return box;
}

function cutNote([, length]) {
  const words = `Cut to keep this file small: the whole text has ${number(length ?? 0)} characters.`;
  return length ? el("p", { class: "note" }, words) : null;
}

/** An answer, rendered unless the reader wants it raw or it can't be. */
function answerText(trial, marks) {
  const [text] = trial.answer ?? [""];
  const raw = address().text === "raw" || !text;
  const ink = inkFor(text, marks, trial);
  const rendered = raw ? null : markdown(ink);
  if (!rendered) {
    const note = raw ? null : el("p", { class: "note" }, "Shown raw: it is too long to be rendered.");
    return el("div", { class: "answer" }, note, longText(trial.answer, "no answer", marks, trial));
  }
  const note = ink.hides() ? el("p", { class: "note" },
    "Some of what checks found is markup, which only raw shows.") : null;
  return el("div", { class: "answer" }, rendered, note, cutNote(trial.answer));
}

function controls(test, { run: runs, left: arms, show: shows }, state, set) {
  const pressed = (label, key, value, kind) => button(label,
    { "aria-pressed": `${state[key] === value}`, [`data-${kind}`]: value },
    () => set(key, value, `[data-${kind}="${value}"]`));
  const row = el("div", { class: "controls" });
  if (runs.length > 1) {
    row.append(group("Run", runs.map((run) => {
      const marks = arms.map((arm) => MARKS[trialOf(test, arm, run)?.outcome] ?? "–").join("→");
      return pressed(`${run} ${marks}`, "run", run, "run");
    })));
  }
  if (arms.length > 2) {
    const named = arms.map((arm) => [arm, armName(arm, test.against)]);
    row.append(choice("Compare", named, state, "left", set), choice("with", named, state, "right", set));
  }
  if (shows.length > 1) {
    const labels = { answers: "answers", diff: "diff", skill: "SKILL.md" };
    row.append(group("Show", shows.map((show) => pressed(labels[show], "show", show, "show"))));
  }
  const raw = address().text === "raw";
  row.append(group("Text", [["rendered", null], ["raw", "raw"]].map(([label, value]) =>
    button(label, { "aria-pressed": `${raw === (value === "raw")}`, "data-text": label }, (event) => {
      const box = event.target.closest(".runs");
      go({ text: value });
      box.querySelector(`[data-text=${label}]`)?.focus();
    }))));
  return row;
}

function choice(label, arms, state, key, set) {
  const options = arms.map(([arm, name]) =>
    el("option", { value: arm, selected: state[key] === arm }, name));
  return el("label", {}, `${label} `, el("select", {
    "data-arm-of": key, change: (event) => set(key, event.target.value, `[data-arm-of=${key}]`),
  }, ...options));
}

function trials(test, state, body) {
  const beside = state.show === "skill";
  const arms = beside ? [state.right] : [...new Set([state.left, state.right])];
  const pair = arms.map((arm) => [arm, trialOf(test, arm, state.run)]);
  const cards = pair.map(([arm, trial]) => card(test, arm, trial, state.show !== "diff", body));
  if (beside) {
    cards.unshift(el("section", { class: "card" }, el("h3", {}, "SKILL.md"),
      skillView(test.skill, test.against)));
  }
  const box = el("div", {}, el("div", { class: "pair" }, ...cards));
  if (state.show === "diff") box.append(diffOf(...pair.map(([, trial]) => trial?.answer?.[0] ?? "")));
  return box;
}

function card(test, arm, trial, whole, body) {
  const head = el("h3", {}, armName(arm, test.against));
  if (!trial) {
    return el("section", { class: "card" }, head, el("p", { class: "note" }, "not asked in this run"));
  }
  const outcome = `${MARKS[trial.outcome]} ${trial.outcome}`;
  head.append(" ", el("span", { class: `outcome-word ${trial.outcome}` }, outcome));
  const visit = (check, next) => goToPlace(body, arm, check, next);
  const checks = trial.checks.map(([mark, name, reason], number) =>
    el("li", { class: mark.toLowerCase() }, el("b", {}, mark),
      el("span", {}, el("code", {}, name), " ", reason, " ",
        whole ? placesOf(trial, number, visit) : null)));
  const marks = whole && trial.answer ? marksOf(trial) : [];
  return el("section", { class: "card", "data-arm": arm }, head, el("p", { class: "facts" }, spent(trial)),
    ...activity(trial.activity),
    trial.error ? el("p", { class: "error" }, trial.error) : null,
    checks.length ? el("ul", { class: "checks" }, ...checks) : null,
    whole ? answerHead(trial, marks) : null,
    whole ? answerText(trial, marks) : null,
    whole && trial.files ? files(trial.files, trial.all_files) : null,
    whole && trial.transcript ? transcript(trial) : null);
}

function answerHead(trial, marks) {
  if (!trial.answer?.[0]) return null;
  const label = trial.answer[1] ? "Copy answer, as cut" : "Copy answer";
  return el("div", { class: "answer-head" }, markLegend(marks), copier(label, () => trial.answer[0]));
}

/** Shows one place after the other of what a check found; returns the number of the next one. */
function goToPlace(body, arm, check, next) {
  const card = `[data-arm="${CSS.escape(arm)}"]`;
  const places = () => [...body.querySelectorAll(`${card} mark[data-starts~="${check}"]`)];
  if (!places().length) go({ text: "raw" });
  if (!places().length) body.querySelector(`${card} .answer .more`)?.click();
  const all = places();
  const place = all[next % all.length];
  if (!place) return 0;
  place.scrollIntoView({ block: "center" });
  place.focus({ preventScroll: true });
  return (next + 1) % all.length;
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

function diffOf(before, after = "", same = "The answers are the same.") {
  const { pieces, rough } = difference(before, after);
  const notes = [];
  if (before === after) notes.push(same);
  if (rough) notes.push("They differ too much to compare every word.");
  if (Math.max(before.length, after.length) > MOST_LETTERS) {
    notes.push(`Only the first ${number(MOST_LETTERS)} characters are compared.`);
  }
  const tags = { same: "span", gone: "del", new: "ins" };
  const shown = el("pre", { class: "diff", tabindex: "0" });
  for (const [kind, text] of pieces) shown.append(el(tags[kind], {}, text));
  return el("div", {}, notes.length ? el("p", { class: "note" }, notes.join(" ")) : null, shown);
}
