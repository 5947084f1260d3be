// The data of the page, its indexes, and how values are written.
// All files of the viewer are one module, in the order of page.py: what one defines, the later
// ones and every component may use.

const {
  render, h, createContext, useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback,
  useContext, useErrorBoundary,
} = htmPreact;

// What a reader can't see, or a browser acts on: the same characters as in `texts.py`.
const JOINED = "[\\u0620-\\u115e\\u1161-\\u17b3\\u17b6-\\u180a\\u1810-\\u1fff\\u2190-\\u2bff"
  + "\\ufe0f\\u{1f000}-\\u{1faff}]";
const HARMFUL = new RegExp(
  `(?!(?<=${JOINED})[\\u200c\\u200d]${JOINED})`
  + "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
  + "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb"
  + "\\u{d800}-\\u{dfff}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]", "gu");

function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(HARMFUL, (letter) => {
    const code = letter.codePointAt(0).toString(16);
    if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}

// As htm's, but texts from models show what is invisible in them. Lists of elements are fine;
// texts inside of a list are not looked at, so map them to elements.
function html(strings, ...values) {
  return htmPreact.html(
    strings, ...values.map((value) => (typeof value === "string" ? visible(value) : value)),
  );
}

async function unpacked(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

const data = await unpacked(document.getElementById("data").textContent);
const run = data.results;

const labelOf = (of) => (of.agent === "chat" || of.agent in data.played ? of.model : `${of.agent}/${of.model}`);
const keyOf = (of) => JSON.stringify([of.skill, of.agent, of.model, of.case]);
const caseKey = (of) => JSON.stringify([of.skill, of.case]);

function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}

// What each case says, in the order of `signals.py`.
const SIGNALS = {
  "only with": "the skill is why it passes: keep it as a guard",
  "only without": "it passes without the skill, not with it: read the two answers first",
  "both pass": "tells nothing about passing: make it harder, or keep it for its cost",
  "both fail": "the skill lacks this, or the check is wrong: open one answer beside SKILL.md",
  mixed: "the runs disagree: run it more often, or ask a clearer question",
};

// How tests ended, the worst first; within, what to read first.
const OUTCOMES = ["regressed", "failed", "error", "not run", "accepted", "passed"];
const READ_FIRST = ["only without", "both fail", "mixed", "only with", "both pass"];
const severity = ({ outcome, signal }) => 10 * OUTCOMES.indexOf(outcome)
  + (signal ? READ_FIRST.indexOf(signal) : 9);

// Tests, as `PlannedCase` has them, with `id` (the end of a link), `label` (agent and model),
// `question`, `records` (all arms and runs), how each ended, its signal, and its `change` since the
// earlier run.
const tests = testsOf();
const testById = new Map(tests.map((test) => [test.id, test]));
const testsOfCase = groupBy(tests, caseKey);
const skillByName = new Map(run.skills.map((skill) => [skill.name, skill]));
const labels = [...new Set(tests.map((test) => test.label))];

// Names without what all of them begin with, up to a "/" or ":".
function briefNames(names) {
  const [first = ""] = names;
  let shared = 0;
  while (names.length > 1 && shared < first.length && names.every((name) => name[shared] === first[shared])) shared += 1;
  const start = first.slice(0, shared);
  const cut = Math.max(start.lastIndexOf("/"), start.lastIndexOf(":")) + 1;
  return new Map(names.map((name) => [name, name.slice(cut)]));
}

function testsOf() {
  const records = groupBy(run.records, keyOf);
  const questions = new Map(run.questions.map((of) => [caseKey(of), of.question]));
  const outcomes = new Map(run.outcomes.map((of) => [of.nodeid, of]));
  const signals = new Map(run.by_case.map((of) => [keyOf(of), of]));
  const changes = new Map((data.changes?.cases ?? []).map(
    (change) => [JSON.stringify([change.skill, change.model, change.case]), change],
  ));
  return run.tests.map((test, number) => {
    const label = labelOf(test);
    const { outcome = "not run", reason = "", regressed = false } = outcomes.get(test.nodeid) ?? {};
    const { signal = null, signal_shown: shown = false } = signals.get(keyOf(test)) ?? {};
    return Object.assign(test, {
      number, label, reason, signal, shown,
      id: `${test.skill}/${test.case}/${label}`,
      outcome: regressed ? "regressed" : outcome,
      command: data.commands[number],
      question: questions.get(caseKey(test)) ?? "",
      records: records.get(keyOf(test)) ?? [],
      change: changes.get(JSON.stringify([test.skill, label, test.case])) ?? null,
    });
  });
}

// The record of a trial: recordOf(test, "skill", 1).
function recordOf(test, arm, runNumber) {
  return test.records.find((record) => record.arm === arm && record.run === runNumber) ?? null;
}

// How often a test passed in an arm: [passes, runs], or null. Extra runs are no part of a rate.
function countOf(test, arm) {
  const graded = test.records.filter((record) => record.arm === arm && !record.extra
    && record.outcome !== "errored");
  if (!graded.length) return null;
  return [graded.filter((record) => record.outcome === "passed").length, graded.length];
}

function armName(arm, skill) {
  const names = {
    baseline: "without the skill",
    previous: `at ${skillByName.get(skill)?.against ?? "the git ref"}`,
    again: "with the skill again",
    trace: "with a trace",
    skill: "with the skill",
  };
  return Object.hasOwn(names, arm) ? names[arm] : arm;
}

// The first check that failed in a run with the skill, or why there is no answer, or another reason
// why a test did not pass, such as an empty answer that does; null if none.
function firstFailure(test) {
  const unanswered = test.records.find((record) => record.error);
  if (unanswered) return { check: "error", reason: unanswered.error };
  for (const record of test.records.filter(({ arm }) => arm === "skill")) {
    const failed = record.checks.find((check) => !check.passed && check.required);
    if (failed && record.outcome === "failed") return failed;
  }
  return test.reason ? { check: "", reason: test.reason } : null;
}

// How values are written; null is a dash. Numbers of whole runs come as texts.
const DASH = "–";
const format = {
  percent: (share) => (share == null ? DASH : `${Math.round(100 * share)}%`),
  points: (share) => {
    if (share == null) return DASH;
    const points = Math.round(100 * share);
    return points > 0 ? `+${points}` : `${points || 0}`;
  },
  whole: (number) => (number == null ? DASH : Math.round(number).toLocaleString("en-US")),
  seconds: (number) => (number == null ? DASH : `${number.toLocaleString(
    "en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} s`),
  dollars: (amount) => {
    if (amount == null) return DASH;
    if (amount > 0 && amount < 0.001) return "<$0.001";
    if (amount < 0.0995) return `$${Number(amount.toPrecision(2))}`;
    const digits = amount < 999.995 ? 2 : 0;
    return `$${amount.toLocaleString(
      "en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
  },
  count: (count) => (count ? `${count[0]}/${count[1]}` : DASH), // [passes, runs]
  day: (moment) => new Date(moment).toLocaleString(
    "en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
      timeZone: "UTC", timeZoneName: "short" }),
};
const counted = (number, word) => {
  const several = word.endsWith("ry") ? `${word.slice(0, -1)}ies` : `${word}s`;
  return `${format.whole(number)} ${number === 1 ? word : several}`;
};
