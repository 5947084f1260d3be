// What an agent did in a trial: numbers, the files it left, and its transcript, folded.
// Text from outside is only ever set as text, never as markup.

const PREVIEW = 120;

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

function counted(count, word) {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

function files(all, count) {
  const shown = all.flatMap(([path, size, text, change, image]) => {
    const about = change === "deleted" ? "" : ` ${counted(size, "byte")}`;
    const head = el("p", { class: "facts" },
      el("b", { class: change }, change), " ", el("code", {}, path), about);
    if (change === "deleted") return [head];
    if (image) return [head, el("img", { src: data.images[image], alt: path })];
    return [head, longText(text, "not a text, or too large")];
  });
  const rest = count - all.length;
  if (rest) shown.push(el("p", { class: "note" }, `${counted(rest, "more file")} not shown.`));
  return el("details", { class: "files" }, el("summary", {}, `Files (${number(count)})`), ...shown);
}

function transcript(steps, count, cutAfter) {
  const box = el("details", { class: "transcript" },
    el("summary", {}, `Transcript (${counted(count, "step")})`));
  let reply = 0;
  let call = null;
  steps.forEach((step, index) => {
    const [kind, tool, , , of] = step;
    if (index === cutAfter) {
      box.append(el("p", { class: "note" }, `${counted(count - steps.length, "step")} not shown.`));
      call = null;
    }
    if (of !== reply) {
      reply = of;
      call = null;
      box.append(el("p", { class: "facts turn" }, replyLine(step)));
    }
    if (kind === "result" && call && call.tool === tool) {
      call.box.append(result(step));
      if (step[2]) call.box.classList.add("failed");
      call = null;
    } else if (kind === "call") {
      call = { tool, box: folded(step, "calls") };
      box.append(call.box);
    } else {
      box.append(kind === "assistant" || kind === "user" ? said(step) : folded(step, kind));
    }
  });
  return box;
}

function replyLine([, , , , reply, seconds, input, output, cost]) {
  return [
    `Turn ${number(reply)}`,
    seconds != null && `${seconds.toFixed(1)} s`,
    input != null && `${number(input)} tokens in`,
    output != null && `${number(output)} out`,
    cost && dollars(cost),
  ].filter(Boolean).join(" · ");
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

function result([, tool, failed, text, , seconds]) {
  const facts = [`${tool} ${failed ? "failed" : "gave"}`, seconds != null && `${seconds.toFixed(1)} s`];
  return el("div", { class: "result" },
    el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")), longText(text, ""));
}
