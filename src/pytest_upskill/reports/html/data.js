// The data of the page: all tests, each a case on a model, with its trials.

const data = await unpacked().catch((error) => {
  document.getElementById("table").replaceChildren("This browser is too old to unpack the cases.");
  throw error;
});
const tests = testsOf(data);

async function unpacked() {
  const letters = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function mean(values) {
  const known = values.filter((value) => value != null);
  return known.length && known.length === values.length
    ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function testsOf(data) {
  return data.tests.map((test, order) => {
    const about = data.cases[test.case];
    const [without, previous, now] = test.rates ?? [null, null, null];
    const priced = test.trials.some((trial) => trial.cost != null);
    const cost = (arm) => {
      if (!priced) return null;
      const answered = trialsOf(test, arm).filter((trial) => trial.outcome !== "errored");
      const one = mean(answered.map((trial) => trial.cost));
      return one == null ? null : 1000 * one;
    };
    return {
      ...about, ...test, order, without, previous, with: now,
      name: about.name, against: data.against[about.skill],
      before: test.tokens?.[0], after: test.tokens?.[1],
      costs: [cost("baseline"), cost("skill")],
    };
  });
}

function trialsOf(test, arm) {
  return test.trials.filter((trial) => trial.arm === arm).sort((a, b) => a.run - b.run);
}

function trialOf(test, arm, run) {
  return test.trials.find((trial) => trial.arm === arm && trial.run === run);
}

function armName(arm, ref) {
  const names = {
    baseline: "without the skill",
    previous: `with the skill at ${ref ?? "the git ref"}`,
    again: "with the skill again",
    trace: "with a trace instead of the skill",
    skill: "with the skill",
  };
  return Object.hasOwn(names, arm) ? names[arm] : `in the arm ${arm}`;
}
