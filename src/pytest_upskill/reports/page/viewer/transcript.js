// What an agent did: the files that it left, and a line for each thing that it said or called.

const FEW_FILES = 5; // are shown open
const LONG = 12; // turns from which on a transcript has an outline
const MOST_STEPS = 400; // before "Show all"
const SHORTEST = 0.1; // seconds of a trial that has a time bar
const SAID = ["assistant", "answer"]; // by the agent, and by the user of its case
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
  const title = html`<code>${file.path}</code>${" "}
    <${Word} word=${file.change} kind=${CHANGES[file.change]} />${" "}
    <small>${size}${isText || picture || !size ? "" : ", not a text, or too large"}</small>`;
  if (picture) {
    return html`<figure class="file"><figcaption>${title}</figcaption>
      <img src=${picture} alt=${file.path} /></figure>`;
  }
  if (!isText) return html`<p class="file">${title}</p>`;
  const Text = /\.(md|markdown)$/i.test(file.path) && !raw ? Markdown : Marked;
  return html`<${Fold} kind="file" open=${open} title=${title}>
    <${Text} text=${file.text} label=${file.path} /></${Fold}>`;
}

// Steps: what was said, and calls together with their results.

function stepsOf(record) {
  const steps = [];
  const waiting = new Map(); // calls without a result, by reply and tool
  for (const turn of record.transcript) {
    const calls = waiting.get(`${turn.reply} ${turn.tool}`) ?? [];
    const call = turn.kind === "result" ? calls.shift() : null;
    if (call) {
      call.result = turn;
      continue;
    }
    const step = { ...turn, result: null, isFirst: turn.reply !== (steps.at(-1)?.reply ?? 0) };
    steps.push(step);
    if (turn.kind === "call") waiting.set(`${turn.reply} ${turn.tool}`, [...calls, step]);
  }
  for (const step of steps) step.failed ||= step.result?.failed;
  const names = record.activity?.activated ? [record.skill, "SKILL.md"] : [];
  const opens = ({ kind, text }) => kind === "call" && names.some((name) => text.includes(name));
  const [opened, last] = [steps.find(opens), steps.at(-1)];
  if (opened) opened.opens = true;
  if (last?.kind === "assistant" && last.text.trim() === record.output?.trim()) last.isFinal = true;
  return steps;
}

// The arguments of tools that tell most, the first that a call has.
const COMMANDS = ["command", "cmd"];
const TELLING = [
  ...COMMANDS, "skill", "pattern", "query", "url", "file_path", "path", "filename", "name",
  "description", "prompt", "code", "input",
];

function argumentsOf(text) {
  try {
    const found = JSON.parse(text);
    return found && typeof found === "object" && !Array.isArray(found) ? found : { input: found };
  } catch {
    return { input: text };
  }
}

/** A command that is a list is shown as one would type it, without the shell around it. */
function wordsOf(value) {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return JSON.stringify(value, null, 1);
  const inShell = /(^|\/)(ba|da|z)?sh$/.test(value[0]) && /^-l?c$/.test(value[1]);
  return value.slice(inShell ? 2 : 0).map(wordsOf).join(" ");
}

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

function Step({ step, isOpen, toggle, id }) {
  const { kind, text, result } = step;
  if (kind === "answer" || (kind === "assistant" && !step.isFinal)) {
    return html`<div class=${`step said ${kind}`} id=${id} tabindex="-1">
      <${TurnNumber} step=${step} /><div>${kind === "answer" ? html`<b>The user</b>` : null}
        <${Markdown} text=${text} /></div></div>`;
  }
  return html`<${Line} step=${step} id=${id} isOpen=${isOpen} toggle=${toggle} />
    ${isOpen && !step.isFinal ? html`<div class="inside">
      ${kind === "call" ? html`<${Arguments} given=${argumentsOf(text)} />`
      : html`<${Marked} text=${text} label=${kind} />`}
      ${result ? html`<${Marked} text=${result.text} label="Result" />` : null}
      ${kind === "call" && !result ? html`<p class="note">no result</p>` : null}</div>` : null}`;
}

const TurnNumber = ({ step }) => html`
  <span class="turn">${step.isFirst && step.reply ? step.reply : ""}</span>`;

function lineOf(step) {
  if (step.isFinal) return ["", "the final answer"];
  return step.kind === "call" ? callLine(step) : [step.tool || step.kind, step.text];
}

function Line({ step, id, isOpen, toggle }) {
  const { kind, failed, opens, isFinal } = step;
  const seconds = step.result?.seconds;
  const [label, words] = lineOf(step);
  const content = html`<${TurnNumber} step=${step} />
    <span class="what"><b>${label}</b> ${oneLine(words)}${isFinal ? ", above" : ""}</span>
    ${opens ? html`<${Word} word="opened the skill" kind="good" />` : null}
    <span class="ending">${failed ? "✘ failed " : ""}
      ${seconds >= 0.05 ? format.seconds(seconds) : ""}</span>`;
  const looks = `step line ${kind}${failed ? " failed" : ""}${opens ? " opens" : ""}`;
  if (isFinal) return html`<div class=${looks} id=${id} tabindex="-1">${content}</div>`;
  return html`<button type="button" class=${looks} id=${id} aria-expanded=${isOpen}
    onClick=${toggle}>${content}</button>`;
}

/** Short arguments on a line each, long ones as they are. */
function Arguments({ given }) {
  return html`<dl class="arguments">${Object.entries(given).map(([name, value]) => {
    const words = COMMANDS.includes(name) || !Array.isArray(value) ? wordsOf(value)
      : JSON.stringify(value, null, 1);
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
      <button type="button" class="more" onClick=${everything}>
        ${open.size ? "Close all" : "Open all"}</button></h4>
    <${TimeBar} steps=${steps} visit=${visit} />
    ${turns > LONG ? html`<${Outline} steps=${steps} visit=${visit} arm=${record.arm} />` : null}
    <div class="steps">${shown.map((step, index) => html`<${Step} key=${index} step=${step}
      id=${`${ids}-${index}`} isOpen=${open.has(index)} toggle=${() => toggle(index)} />`)}</div>
    ${shown.length < steps.length ? html`<button type="button" class="more"
      onClick=${() => showAll(true)}>Show all ${counted(steps.length, "step")}</button>` : null}
  </section>`;
}

/** What a reader looks for: what the agent said, failed calls, and where it opened the skill. */
function Outline({ steps, visit, arm }) {
  const entries = [...steps.entries()]
    .filter(([, { opens, failed, kind }]) => opens || failed || SAID.includes(kind));
  if (!entries.length) return null;
  return html`<nav class="outline" aria-label=${`Outline of the transcript, ${arm}`}>
    ${entries.map(([index, step]) => {
      const [label, words] = lineOf(step);
      const said = SAID.includes(step.kind) ? words.replace(/[*#`]/g, "") : `${label} ${words}`;
      const [kind, sign] = step.opens ? ["opens", "opened the skill:"]
        : step.failed ? ["failed", "✘"] : ["", step.kind === "answer" ? "the user:" : ""];
      return html`<button key=${index} type="button" class=${kind} onClick=${() => visit(index)}>
        <span class="turn">${step.reply}</span> ${sign} ${oneLine(said, 80)}</button>`;
    })}</nav>`;
}

/** Where the time of a trial went: replies of the model, and tools. */
function TimeBar({ steps, visit }) {
  const totals = { model: 0, tool: 0 };
  const bars = [];
  const add = (index, by, seconds) => {
    if (!seconds) return;
    const start = totals.model + totals.tool;
    const words = `turn ${steps[index].reply}, ${by === "model" ? by : steps[index].tool}`;
    const kind = by === "tool" && steps[index].failed ? "failed" : by;
    bars.push({ index, start, seconds, words, kind });
    totals[by] += seconds;
  };
  steps.forEach((step, index) => {
    if (step.kind !== "answer") add(index, step.kind === "result" ? "tool" : "model", step.seconds);
    add(index, "tool", step.result?.seconds);
  });
  const total = totals.model + totals.tool;
  if (total < SHORTEST) return null;
  const opened = bars.findLast(({ index }) => steps[index].opens);
  const share = (seconds) => `${(100 * seconds) / total}%`;
  const [model, tool] = [totals.model, totals.tool].map(format.seconds);
  return html`<figure class="time">
    <svg width="100%" height="18" role="img" aria-label=${`Time: model ${model}, tools ${tool}`}>
      ${bars.map(({ index, kind, start, seconds, words }) => html`<rect key=${`${kind}${index}`}
        class=${kind} x=${share(start)} width=${share(seconds)} y="4" height="14"
        onClick=${() => visit(index)}><title>${`${words}: ${format.seconds(seconds)}`}</title></rect>`)}
      ${opened ? html`<line class="opens" x1=${share(opened.start)} x2=${share(opened.start)}
        y1="0" y2="18"><title>opened the skill</title></line>` : null}
    </svg>
    <figcaption><span class="key model">model ${model}</span> <span class="key tool">tools ${tool}</span>
      ${opened ? html`<span class="key opens">skill opened after
        ${" "}${format.seconds(opened.start)}</span>` : null}</figcaption></figure>`;
}
