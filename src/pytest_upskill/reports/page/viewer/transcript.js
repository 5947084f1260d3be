// What an agent did: the files that it left, and a line for each thing that it said or called.

const FEW_FILES = 5; // are shown open
const LONG = 12; // turns from which on a transcript has an outline
const MOST_STEPS = 400; // before "Show all"
const SHORTEST = 0.1; // seconds of a trial that has a time bar
const CHANGES = { made: "good", changed: "info", deleted: "bad" };

// AnswerFiles({ record }): the files that an agent left behind; data.images has pictures by digest.
function AnswerFiles({ record, raw = false }) {
  const { files } = record;
  if (!files.length) return null;
  return html`<section class="files"><h4>${counted(files.length, "file")}</h4>
    ${files.map((file) => html`<${AnswerFile} key=${file.path} file=${file} raw=${raw}
      open=${files.length <= FEW_FILES} />`)}</section>`;
}

function AnswerFile({ file, open, raw }) {
  const picture = data.images[file.digest];
  const isText = file.text != null;
  const size = file.change === "deleted" ? "" : counted(file.size, "byte");
  const title = html`<code>${file.path}</code> <${Word} word=${file.change} kind=${CHANGES[file.change]} />${" "}
    <small>${size}${isText || picture || !size ? "" : ", not a text, or too large"}</small>`;
  if (picture) return html`<figure class="file"><figcaption>${title}</figcaption><img src=${picture} alt=${file.path} /></figure>`;
  if (!isText) return html`<p class="file">${title}</p>`;
  return html`<${Fold} kind="file" open=${open} title=${title}>
    ${/\.(md|markdown)$/i.test(file.path) && !raw ? html`<${Markdown} text=${file.text} label=${file.path} />`
    : html`<${Marked} text=${file.text} label=${file.path} />`}</${Fold}>`;
}

// Steps: what was said, and calls together with their results.

function stepsOf(record) {
  const steps = [];
  for (const turn of record.transcript) {
    const call = turn.kind === "result"
      && steps.find((step) => step.reply === turn.reply && step.kind === "call" && step.tool === turn.tool && !step.result);
    if (call) call.result = turn;
    else steps.push({ ...turn, result: null });
  }
  const last = steps.at(-1);
  const isFinal = last?.kind === "assistant" && last.text.trim() === (record.output ?? "").trim();
  const opened = record.activity?.activated
    ? steps.find(({ kind, text }) => kind === "call" && [record.skill, "SKILL.md"].some((name) => text.includes(name))) : null;
  let reply = 0;
  return steps.map((step) => {
    const isFirst = step.reply !== reply;
    reply = step.reply;
    return { ...step, isFirst, opens: step === opened, isFinal: isFinal && step === last, failed: step.failed || step.result?.failed };
  });
}

// The arguments of tools that tell most, the first that a call has.
const COMMANDS = ["command", "cmd"];
const TELLING = [...COMMANDS, "skill", "pattern", "query", "url", "file_path", "path", "filename", "name", "description", "prompt", "code", "input"];

function argumentsOf(text) {
  try {
    const found = JSON.parse(text);
    return found && typeof found === "object" && !Array.isArray(found) ? found : { input: found };
  } catch {
    return { input: text };
  }
}

const wordsOf = (value) => (typeof value === "string" ? value
  : Array.isArray(value) && value.every((word) => typeof word === "string")
    ? value.slice(/(^|\/)(ba|z|da)?sh$/.test(value[0]) && /^-l?c$/.test(value[1]) ? 2 : 0).join(" ") : JSON.stringify(value));

/** A call on one line: `$ ls -la`, `read notes.md`, `grep TODO src`. */
function callLine({ tool, text }) {
  const given = argumentsOf(text);
  const name = TELLING.find((one) => Object.hasOwn(given, one)) ?? Object.keys(given)[0];
  if (name === undefined) return [tool, ""];
  const words = wordsOf(given[name]);
  if (COMMANDS.includes(name)) return ["$", words];
  const path = name === "pattern" || name === "query" ? given.path : null;
  return [tool, typeof path === "string" ? `${words} ${path}` : words];
}

function Step({ step, record, isOpen, toggle, id }) {
  const { kind, text, result, failed } = step;
  if (step.isFinal) return html`<${Line} step=${step} id=${id} words="the final answer, above" label="" />`;
  if (kind === "assistant") {
    return html`<div class="step said" id=${id} tabindex="-1"><${TurnNumber} step=${step} /><${Markdown} text=${text} /></div>`;
  }
  const [label, words] = kind === "call" ? callLine(step) : [step.tool || kind, text];
  return html`<${Line} step=${step} id=${id} label=${label} words=${words} isOpen=${isOpen} toggle=${toggle} />
    ${isOpen ? html`<div class="inside">
      ${kind === "call" ? html`<${Arguments} given=${argumentsOf(text)} />` : html`<${Marked} text=${text} label=${kind} />`}
      ${result ? html`<${Marked} text=${result.text} label="Result" />` : null}
      ${kind === "call" && !result ? html`<p class="note">no result</p>` : null}</div>` : null}`;
}

const TurnNumber = ({ step }) => html`<span class="turn">${step.isFirst && step.reply ? step.reply : ""}</span>`;

function Line({ step, id, label, words, isOpen, toggle }) {
  const { kind, failed, result, opens } = step;
  const seconds = result?.seconds;
  const content = html`<${TurnNumber} step=${step} />
    <span class="what"><b>${label}</b> ${oneLine(words)}</span>
    ${opens ? html`<${Word} word="opened the skill" kind="good" />` : null}
    <span class="ending">${failed ? "✘ failed " : ""}${seconds >= 0.05 ? format.seconds(seconds) : ""}</span>`;
  const looks = `step line ${kind}${failed ? " failed" : ""}${opens ? " opens" : ""}`;
  return toggle ? html`<button type="button" class=${looks} id=${id} aria-expanded=${isOpen} onClick=${toggle}>${content}</button>`
    : html`<div class=${looks} id=${id} tabindex="-1">${content}</div>`;
}

/** Short arguments on a line each, long ones as they are. */
function Arguments({ given }) {
  return html`<dl class="arguments">${Object.entries(given).map(([name, value]) => {
    const words = COMMANDS.includes(name) ? wordsOf(value) : typeof value === "string" ? value : JSON.stringify(value, null, 1);
    return html`<div key=${name}><dt>${name}</dt><dd>${words.length > 60 || words.includes("\n")
      ? html`<${Marked} text=${words} label=${name} />` : html`<code>${words}</code>`}</dd></div>`;
  })}</dl>`;
}

// Transcript({ record }): a line per step, which opens; above it where time went and an outline.
function Transcript({ record }) {
  const steps = useMemo(() => stepsOf(record), [record]);
  const [open, setOpen] = useState(() => new Set());
  const [all, showAll] = useState(false);
  const [target, setTarget] = useState(null);
  const ids = `step-${record.arm}-${record.run}`;
  useEffect(() => {
    if (target === null) return;
    const line = document.getElementById(`${ids}-${target}`);
    line?.scrollIntoView({ block: "center" });
    line?.focus({ preventScroll: true });
    setTarget(null);
  }, [target]);
  if (!steps.length) return null;
  const toggle = (index) => setOpen((now) => {
    const next = new Set(now);
    if (!next.delete(index)) next.add(index);
    return next;
  });
  const visit = (index) => {
    if (index >= MOST_STEPS) showAll(true);
    setTarget(index);
  };
  const turns = Math.max(...steps.map(({ reply }) => reply));
  const shown = all ? steps : steps.slice(0, MOST_STEPS);
  const everything = () => setOpen(new Set(open.size ? [] : shown.keys()));
  return html`<section class="transcript">
    <h4>Transcript <small>${counted(turns, "turn")}</small>
      <button type="button" class="more" onClick=${everything}>${open.size ? "Close all" : "Open all"}</button></h4>
    <${TimeBar} steps=${steps} visit=${visit} />
    ${turns > LONG ? html`<${Outline} steps=${steps} visit=${visit} arm=${record.arm} />` : null}
    <div class="steps">${shown.map((step, index) => html`<${Step} key=${index} step=${step} id=${`${ids}-${index}`}
      isOpen=${open.has(index)} toggle=${() => toggle(index)} />`)}</div>
    ${shown.length < steps.length ? html`<button type="button" class="more" onClick=${() => showAll(true)}>
      Show all ${counted(steps.length, "step")}</button>` : null}
  </section>`;
}

/** What a reader looks for: what the agent said, failed calls, and where it opened the skill. */
function Outline({ steps, visit, arm }) {
  const entries = [...steps.entries()].filter(([, step]) => step.opens || step.failed || step.kind === "assistant");
  if (!entries.length) return null;
  return html`<nav class="outline" aria-label=${`Outline of the transcript, ${arm}`}>${entries.map(([index, step]) => {
    const [label, words] = step.kind === "call" ? callLine(step) : ["", step.isFinal ? "the final answer" : step.text.replace(/[*#`]/g, "")];
    const sign = step.opens ? "opened the skill:" : step.failed ? "✘" : "";
    return html`<button key=${index} type="button" class=${step.failed ? "failed" : step.opens ? "opens" : ""}
      onClick=${() => visit(index)}><span class="turn">${step.reply}</span> ${sign} ${label} ${oneLine(words, 80)}</button>`;
  })}</nav>`;
}

/** Where the time of a trial went: replies of the model, and tools. */
function TimeBar({ steps, visit }) {
  const parts = steps.flatMap((step, index) => [
    { index, kind: "model", seconds: step.seconds ?? 0, words: `turn ${step.reply}: model` },
    { index, kind: step.failed ? "failed" : "tool", seconds: step.result?.seconds ?? 0, words: `turn ${step.reply}: ${step.tool}` },
  ]).filter(({ seconds }) => seconds > 0);
  const total = parts.reduce((sum, { seconds }) => sum + seconds, 0);
  if (total < SHORTEST) return null;
  let at = 0;
  const bars = parts.map((part) => {
    const start = at;
    at += part.seconds;
    return { ...part, start };
  });
  const sum = (kinds) => parts.filter(({ kind }) => kinds.includes(kind)).reduce((all, { seconds }) => all + seconds, 0);
  const opened = bars.find(({ index, kind }) => steps[index].opens && kind !== "model") ?? bars.find(({ index }) => steps[index].opens);
  const share = (seconds) => `${(100 * seconds) / total}%`;
  const facts = `model ${format.seconds(sum(["model"]))}, tools ${format.seconds(sum(["tool", "failed"]))}`;
  return html`<figure class="time"><svg width="100%" height="18" role="img" aria-label=${`Time: ${facts}`}>
    ${bars.map(({ index, kind, seconds, words, start }) => html`<rect key=${`${kind}${index}`} class=${kind} x=${share(start)}
      width=${share(seconds)} y="4" height="14" onClick=${() => visit(index)}><title>${`${words}, ${format.seconds(seconds)}`}</title></rect>`)}
    ${opened ? html`<line class="opens" x1=${share(opened.start)} x2=${share(opened.start)} y1="0" y2="18"><title>opened the skill</title></line>` : null}
    </svg><figcaption><span class="key model">model ${format.seconds(sum(["model"]))}</span>
      <span class="key tool">tools ${format.seconds(sum(["tool", "failed"]))}</span>
      ${opened ? html`<span class="key opens">skill opened after ${format.seconds(opened.start)}</span>` : null}</figcaption></figure>`;
}
