// An opened case: CaseView({ test, address }). The answers come first, then why they passed or
// failed. The address says what is shown: `run`, `show` (raw, diff, earlier; rendered answers without
// it), and `arm`, which the skill is compared with.

const SIGNS = { passed: "✔", failed: "✘", errored: "!" };
const NAMES = { passed: "passed", failed: "failed", errored: "error" };

function CaseView({ test, address }) {
  const arms = [...new Set(test.records.map(({ arm }) => arm))];
  const runs = [...new Set(test.records.map((record) => record.run))].sort((one, two) => one - two);
  const ending = (arm, number) => recordOf(test, arm, number)?.outcome;
  const telling = runs.find((number) => ending("skill", number) !== "passed")
    ?? runs.find((number) => ending(arms[0], number) !== "passed") ?? runs[0];
  const runNumber = runs.find((number) => `${number}` === address.get("run")) ?? telling;
  const ways = [
    ["rendered", "Rendered"], ["raw", "Raw"],
    arms.length > 1 && ["diff", "Diff"],
    test.change?.records.length && ["earlier", `Since ${format.day(data.changes.started)}`],
  ].filter(Boolean);
  const show = ways.find(([way]) => way === address.get("show"))?.[0] ?? "rendered";
  const box = useRef(null);
  const [place, visit] = useState(null); // { arm, check, number } to be shown
  useEffect(() => {
    if (place && goToPlace(box.current, place, show)) visit(null);
  }, [place, show]);
  const outcomes = (number) => arms.map((arm) => SIGNS[ending(arm, number)] ?? DASH);
  const props = { test, arms, runNumber, show, visit };
  return html`<article class="case" ref=${box}>
    <${CaseHead} test=${test} />
    <section class="question"><h3>Question</h3>
      <${Marked} text=${test.question} label="Question" /></section>
    ${test.records.length === 0 ? html`<p class="note">This test did not run.</p>` : html`
      <div class="controls">
        ${runs.length > 1 ? html`<${Choice} label="Run" selected=${runNumber}
          choose=${(one) => go({ run: `${one}` })}
          options=${runs.map((one) => [one, `Run ${one} ${outcomes(one).join(" ")}`])} />` : null}
        <${Choice} label="Show" options=${ways} selected=${show}
          choose=${(way) => go({ show: way === "rendered" ? null : way })} />
      </div>
      ${show === "diff" ? html`<${ArmsDiff} ...${props} chosen=${address.get("arm")} />`
      : show === "earlier" ? html`<${EarlierDiff} ...${props} />`
        : html`<${Arms} ...${props} />`}`}
    <${AboutCase} test=${test} />
  </article>`;
}

function CaseHead({ test }) {
  const others = testsOfCase.get(caseKey(test));
  const brief = briefNames(others.map(({ label }) => label));
  return html`<header>
    <h2><small>${test.skill}</small> ${test.case} <${Word} word=${test.outcome} kind="none" />
      ${test.signal ? html` <${Word} word=${test.signal} title=${SIGNALS[test.signal]} />` : null}</h2>
    ${others.length > 1 ? html`<nav class="models" aria-label="Models">${others.map((other) => html`
      <a key=${other.id} href=${href({ case: other.id, run: null })} title=${other.label}
        aria-current=${other === test ? "true" : null}>
        <${Mark} outcome=${other.outcome} /> ${brief.get(other.label)}</a>`)}</nav>` : null}
    ${test.expected && test.reason ? html`<p class="note">${test.reason}</p>` : null}
  </header>`;
}

// Where the case is from, and how to run it again.
function AboutCase({ test }) {
  const { expected } = test;
  return html`<footer>
    <${Facts} facts=${[
      test.label,
      test.file && `${test.file}:${test.line}`,
      ...test.tags.map((tag) => html`<a href=${href({ tag }, true)}>tag: ${tag}</a>`),
      expected && `accepted: ${expected.was.passes} of ${expected.was.runs} passed, ${expected.date}`,
      html`<${Copy} label="Copy link"
        text=${`${location.href.split("#")[0]}${href({ case: test.id }, true)}`} />`,
    ]} />
    ${test.command ? html`<p class="rerun"><code>${test.command}</code>
      <${Copy} text=${test.command} label="Copy command" /></p>` : null}
  </footer>`;
}

const Facts = ({ facts }) => html`<p class="facts">${facts.filter(Boolean).map((fact, index) => html`
  <span key=${index}>${fact}</span>`)}</p>`;

function Arms({ test, arms, runNumber, show, visit }) {
  const trials = arms.map((arm) => ({
    arm, title: armName(arm, test.skill), record: recordOf(test, arm, runNumber),
  }));
  const known = trials.filter(({ record }) => record);
  return html`<div class="arms">${trials.map(({ arm, title, record }) => html`
      <${AnswerCard} key=${`${arm} ${runNumber}`} title=${title} record=${record} raw=${show === "raw"} />`)}</div>
    <div class="arms">${known.map(({ arm, title, record }) => html`<section key=${`${arm} ${runNumber}`} class="trial" data-trial=${arm}>
      <h3>${record.checks.length ? "Checks" : "Trial"} ${title}</h3>
      <${Checks} record=${record} visit=${(check, number) => visit({ arm, check, number })} />
      <${Facts} facts=${spent(record)} />
      ${record.activity ? html`<${Done} activity=${record.activity} />` : null}
      <${Transcript} record=${record} /></section>`)}</div>`;
}

// AnswerCard({ record, title, raw }): how a trial ended, and its answer.
function AnswerCard({ record, title, raw }) {
  if (!record) {
    return html`<section class="card"><h3>${title}</h3>
      <p class="note">not asked in this run</p></section>`;
  }
  const { arm, error, activity, output } = record;
  const Text = raw ? Marked : Markdown;
  return html`<section class="card" data-arm=${arm}>
    <${TrialTitle} record=${record} title=${title} />
    ${error ? html`<p class="error">${error}</p>` : null}
    ${output == null ? null : html`<section class="answer">
      ${activity ? html`<h4>Final answer</h4>` : null}
      <${Text} record=${record} label=${`Answer ${title}`} />
      ${output ? html`<${Copy} text=${output} label="Copy answer" />` : null}</section>`}
    <${AnswerFiles} record=${record} raw=${raw} />
  </section>`;
}

function TrialTitle({ record, title }) {
  const { outcome, checks } = record;
  const failed = checks.find((check) => !check.passed && check.required);
  return html`<h3>${title} <${Word} word=${`${SIGNS[outcome]} ${NAMES[outcome]}`} kind="none" /></h3>
    ${failed ? html`<p class="first-failed">${failed.check}: ${oneLine(failed.reason)}</p>` : null}`;
}

function Checks({ record, visit = null }) {
  return html`<ul class="checks">${record.checks.map((check, index) => html`
    <${Check} key=${index} check=${check} visit=${visit && ((number) => visit(index, number))} />`)}</ul>`;
}

function spent(record) {
  const { input_tokens: input, output_tokens: output, cached_tokens: cached, score } = record;
  const passed = record.checks.filter((check) => check.passed).length;
  return [
    input != null && `${format.whole(input)} tokens in`,
    cached && `${format.whole(cached)} of them cached`,
    output != null && `${format.whole(output)} out`,
    record.seconds != null && format.seconds(record.seconds),
    record.cost && format.dollars(record.cost),
    record.user && userSpent(record.user),
    score > 0 && score < 1
      && `${passed} of ${counted(record.checks.length, "check")} (score ${score.toFixed(2)})`,
    record.stored && "from cache",
  ];
}

/** What the model took that played the user, which is not the agent's. */
function userSpent({ calls, usage, cost }) {
  const tokens = (usage?.input ?? 0) + (usage?.output ?? 0);
  return `the user: ${counted(calls, "call")}, ${format.whole(tokens)} tokens`
    + (cost ? `, ${format.dollars(cost)}` : "");
}

const SENT = { cut: "description cut", name: "name only", "not listed": "not there" };

function Done({ activity }) {
  const { turns, tool_calls: calls, activated, opened, read, scripts, findings, listed } = activity;
  const named = (verb, names) => names.length && `${verb} ${names.slice(0, 20).join(", ")}`;
  const shortened = listed.filter((skill) => skill.tested && skill.sent !== "whole");
  const facts = [
    counted(turns, "turn"),
    counted(calls, "tool call"),
    named("in the agent's list", shortened.map(({ name, sent }) => `${name} (${SENT[sent]})`)),
    activated == null ? null : activated ? "opened the skill" : "did not open the skill",
    (!activated || listed.filter((skill) => skill.tested).length > 1)
      && named("opened", opened), named("read", read), named("ran", scripts),
  ];
  return html`<${Facts} facts=${facts} />
    ${findings.slice(0, 20).map((finding) => html`<p class="note" key=${finding}>${finding}</p>`)}`;
}

function Check({ check, visit }) {
  const [next, setNext] = useState(0);
  const places = check.found.length + check.unwanted.length;
  const [kind, sign, word] = check.passed ? ["good", "✔", "passed"]
    : check.required ? ["bad", "✘", "failed"] : ["warn", "○", "missed, not required"];
  const showNext = () => {
    visit(next % places);
    setNext(next + 1);
  };
  return html`<li class=${kind}><b aria-hidden="true">${sign}</b>
    <span><span class="hidden">${word}: </span><code>${check.check}</code>${
      check.with_skill ? " (only with the skill)" : ""} ${check.reason}
      ${places && visit ? html` <button type="button" onClick=${showNext}
        class="place ${check.unwanted.length ? "unwanted" : "found"}">
        ${counted(places, "place")} ↓</button>` : null}
      ${check.output ? html`<details><summary>what it printed last</summary>
        <pre>${check.output}</pre></details>` : null}</span></li>`;
}

/** Shows one of the places that a check found, and says if it could. What is no rendered text is in
 *  the raw one, perhaps in the part that is not shown yet. */
function goToPlace(box, place, show) {
  const card = [...box.querySelectorAll(".card")].find((one) => one.dataset.arm === place.arm);
  const marks = [...(card?.querySelectorAll(`.answer mark[data-starts~="${place.check}"]`) ?? [])];
  const mark = marks[place.number % Math.max(1, marks.length)];
  if (!mark && show !== "raw") {
    go({ show: "raw" });
    return false;
  }
  if (!mark && card?.querySelector(".answer .more")) {
    card.querySelector(".answer .more").click();
    setTimeout(() => goToPlace(box, place, show));
  }
  mark?.scrollIntoView({ block: "center" });
  mark?.focus({ preventScroll: true });
  return true;
}

function ArmsDiff({ test, arms, runNumber, chosen }) {
  const others = arms.filter((arm) => arm !== "skill");
  const from = others.includes(chosen) ? chosen : others.includes("previous") ? "previous" : others[0];
  const to = arms.includes("skill") ? "skill" : arms.at(-1);
  const [before, after] = [from, to].map((arm) => recordOf(test, arm, runNumber));
  const named = (arm) => armName(arm, test.skill);
  return html`${others.length > 1 ? html`<div class="controls">
      <${Choice} label="Compare with" selected=${from} choose=${(arm) => go({ arm })}
        options=${others.map((arm) => [arm, named(arm)])} /></div>` : null}
    <${RecordsDiff} before=${before} after=${after} titles=${[named(from), named(to)]} />`;
}

function EarlierDiff({ test, runNumber }) {
  const { kind, was, now, shown, records } = test.change;
  const before = records.find((record) => record.arm === "skill" && record.run === runNumber);
  const facts = [
    CHANGE_WORDS[kind],
    was && now && kind !== "edited" && `passed ${format.count(was)} → ${format.count(now)}`,
    ["broke", "fixed", "fell", "rose"].includes(kind) && !shown && "could be chance",
  ];
  return html`<div class="change"><${Word} word=${kind} kind="none" /> <${Facts} facts=${facts} /></div>
    <${RecordsDiff} before=${before} after=${recordOf(test, "skill", runNumber)} titles=${["then", "now"]} />`;
}

const CHANGE_WORDS = {
  broke: "passed before, and fails now",
  fixed: "failed before, and passes now",
  fell: "passes fewer runs than before",
  rose: "passes more runs than before",
  checks: "passes as often as before, but other checks do",
  answer: "passes as often as before; only the answer changed",
  edited: "question or checks were edited, so the results can't be compared",
  new: "not in the earlier run",
  gone: "not in this run",
};

/** Two trials and what differs: the answers, and files by their paths. */
function RecordsDiff({ before, after, titles }) {
  const texts = (record) => new Map((record?.files ?? []).map((file) => [file.path, file.text ?? ""]));
  const [old, now] = [texts(before), texts(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])]
    .filter((path) => old.get(path) !== now.get(path));
  return html`<section class="card">
      ${paths.map((path) => html`<div key=${path}><h4><code>${path}</code></h4>
        <${TextDiff} before=${old.get(path) ?? ""} after=${now.get(path) ?? ""} /></div>`)}
      <h4>Answer <small><del>${titles[0]}</del> <ins>${titles[1]}</ins></small></h4>
      <${TextDiff} before=${before?.output ?? ""} after=${after?.output ?? ""} /></section>
    <div class="arms">${[before, after].map((record, index) => html`<section key=${index} class="card">
      ${record ? html`<${TrialTitle} record=${record} title=${titles[index]} /><${Checks} record=${record} />`
        : html`<h3>${titles[index]}</h3><p class="note">not asked in this run</p>`}</section>`)}</div>`;
}
