// What an agent did in a trial: numbers, the files it left, and its transcript, folded.
// Text from outside is only ever set as text, never as markup.

const PREVIEW = 120;
const FEW_FILES = 3; // are shown open

function activity(done) {
  if (!done) return [];
  const facts = [
    counted(done.turns, "turn"),
    counted(done.calls, "tool call"),
    done.opened == null ? null : done.opened ? "opened the skill" : "did not open the skill",
    done.others.length && `opened ${done.others.join(", ")}`,
    done.read.length && `read ${done.read.join(", ")}`,
    done.ran.length && `ran ${done.ran.join(", ")}`,
  ].filter(Boolean).join(" · ");
  return [el("p", { class: "facts" }, facts),
    ...done.findings.map((finding) => el("p", { class: "note" }, finding))];
}

function files(all, count) {
  const shown = all.map(([path, size, text, change, image]) => {
    const about = change === "deleted" ? "" : ` ${counted(size, "byte")}`;
    const name = [el("b", { class: change }, change), " ", el("code", {}, path), about];
    if (change === "deleted") return el("p", { class: "facts" }, ...name);
    if (image) return el("div", {}, el("p", { class: "facts" }, ...name), el("img", { src: data.images[image], alt: path }));
    if (text == null) return el("p", { class: "facts" }, ...name, ", not a text, or too large");
    return el("details", { class: "file", open: all.length <= FEW_FILES }, el("summary", {}, ...name),
      longText(text, ""));
  });
  const rest = count - all.length;
  if (rest) shown.push(el("p", { class: "note" }, `${counted(rest, "more file")} not shown.`));
  return el("details", { class: "files" }, el("summary", {}, `Files (${number(count)})`), ...shown);
}

/** What an agent did, turn by turn; it is only made when somebody opens it. */
function transcript(trial) {
  const { steps, totals } = trial;
  const facts = [counted(steps, "step"), totals.failed && counted(totals.failed, "failed call"),
    totals.tools != null && `${totals.tools.toFixed(1)} s in tools`].filter(Boolean);
  const box = el("details", { class: "transcript", toggle: () => {
    if (box.open && box.children.length === 1) box.append(transcriptTools(box, trial), ...turnsOf(trial));
  } }, el("summary", {}, `Transcript (${facts.join(", ")})`));
  return box;
}

/** Ways through a long transcript. */
function transcriptTools(box, { totals }) {
  const fold = (open) => () => {
    for (const one of box.querySelectorAll(".step")) one.open = open;
  };
  const row = el("div", { class: "controls" },
    group("Steps", [button("expand all", {}, fold(true)), button("collapse all", {}, fold(false))]));
  const said = el("span", { role: "status", class: "said" });
  if (totals.failed) {
    let next = 0;
    row.append(button(`next failed call (${number(totals.failed)})`, { class: "to-failed" }, () => {
      const failed = [...box.querySelectorAll(".step.failed")];
      if (!failed.length) said.textContent = "in the steps that are not shown";
      else visitStep(failed[next++ % failed.length]);
    }));
  }
  if (totals.opened) {
    row.append(button(`turn ${number(totals.opened)}: opened the skill`, { class: "to-skill" }, () => {
      const turn = box.querySelector(`[data-turn="${totals.opened}"]`);
      if (turn) visitStep(turn);
      else said.textContent = "in the steps that are not shown";
    }));
  }
  row.append(said);
  return row;
}

function visitStep(step) {
  if (step.matches("details")) step.open = true;
  step.scrollIntoView({ block: "center" });
  (step.querySelector("summary") ?? step).focus({ preventScroll: true });
}

function turnsOf({ transcript: steps, steps: count, cut_after: cutAfter }) {
  const shown = [];
  let reply = 0;
  let call = null;
  steps.forEach((step, index) => {
    const [kind, tool, failed, , of] = step;
    if (index === cutAfter) {
      shown.push(el("p", { class: "note" }, `${counted(count - steps.length, "step")} not shown.`));
      call = null;
    }
    if (of !== reply) {
      reply = of;
      call = null;
      shown.push(turnHead(step, steps.filter((one) => one[4] === of)));
    }
    if (kind === "result" && call && call.tool === tool) {
      call.box.append(result(step));
      call.box.querySelector("summary").append(" ", resultNote(step));
      if (failed) call.box.classList.add("failed");
      call = null;
    } else if (kind === "call") {
      call = { tool, box: folded(step, "calls") };
      shown.push(call.box);
    } else {
      shown.push(kind === "assistant" || kind === "user" ? said(step) : folded(step, kind));
    }
  });
  return shown;
}

/** A turn with what it took: the reply itself, then its tools. */
function turnHead([, , , , reply, seconds, input, output, cost], steps) {
  const results = steps.filter(([kind]) => kind === "result");
  const calls = steps.filter(([kind]) => kind === "call").length;
  const failed = results.filter((one) => one[2]).length;
  const tools = results.reduce((sum, one) => sum + (one[5] ?? 0), 0);
  return el("p", { class: "facts turn", "data-turn": reply, tabindex: "-1" }, [
    `Turn ${number(reply)}`,
    seconds != null && `${seconds.toFixed(1)} s`,
    input != null && `${number(input)} tokens in`,
    output != null && `${number(output)} out`,
    cost && dollars(cost),
    calls && counted(calls, "call") + (failed ? `, ${number(failed)} failed` : ""),
    tools && `${tools.toFixed(1)} s in tools`,
  ].filter(Boolean).join(" · "));
}

function said([kind, , , text]) {
  return el("div", { class: kind }, el("p", { class: "facts" }, el("b", {}, kind)), longText(text, ""));
}

/** A call, a thought, or another step that is opened only if somebody wants to read it. */
function folded([kind, tool, failed, text], label) {
  const preview = (text?.[0] ?? "").slice(0, PREVIEW).replace(/\s+/g, " ");
  return el("details", { class: `step ${kind}${failed ? " failed" : ""}` },
    el("summary", {}, el("b", {}, tool ? `${label} ${tool}` : label), " ", el("code", {}, preview)),
    longText(text, ""));
}

/** On the line of a call: how it ended, so that it need not be opened. */
function resultNote([, , failed, text]) {
  const length = text?.[1] ?? text?.[0].length ?? 0;
  return el("span", { class: `ending${failed ? " failed" : ""}` },
    `${failed ? "✗ failed, " : "→ "}${counted(length, "character")}`);
}

function result([, tool, failed, text, , seconds]) {
  const facts = [`${tool} ${failed ? "failed" : "gave"}`, seconds != null && `${seconds.toFixed(1)} s`];
  return el("div", { class: "result" },
    el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")), longText(text, ""));
}
