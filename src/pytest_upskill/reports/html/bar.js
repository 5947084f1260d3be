// A bar at the top of the window: skill, model and verdict of what is below it.

const FEW_VERDICTS = 3; // of which each is told with its model
const LINE = 64; // pixels from the top: what is gone to by a link comes to stand there
const bar = el("nav", { class: "bar", "aria-label": "Where you are", hidden: true });
document.body.append(bar);

function crumbs() {
  const body = document.elementFromPoint(innerWidth / 2, LINE)?.closest(".cases tbody");
  const test = body && tests.find((one) => one.body === body);
  if (test) {
    return [skillCrumb(test.skill), el("span", {}, test.model),
      verdictCrumb(verdictOf(test), { skill: test.skill, model: test.model }),
      el("a", { href: `#${test.id}` }, test.name)];
  }
  const section = [...document.querySelectorAll("main > section")]
    .findLast((one) => one.getBoundingClientRect().top <= LINE);
  const skill = Object.keys(data.skills).find((name) => data.skills[name].id === section?.id);
  if (skill == null) {
    const title = section?.querySelector("h2")?.textContent;
    return title ? [el("b", {}, title)] : [];
  }
  const verdicts = Object.entries(Object.hasOwn(data.verdicts, skill) ? data.verdicts[skill] : {});
  if (verdicts.length <= FEW_VERDICTS) {
    return [skillCrumb(skill), ...verdicts.flatMap(([model, word]) =>
      [el("span", {}, model), verdictCrumb(word, { skill, model })])];
  }
  return [skillCrumb(skill), ...[...Map.groupBy(verdicts, ([, word]) => word)].map(([verdict, own]) =>
    verdictCrumb(verdict, { skill, verdict }, ` ${own.length}`))];
}

function skillCrumb(skill) {
  return el("a", { href: `#${data.skills[skill]?.id ?? "overview"}` }, el("b", {}, skill));
}

function verdictCrumb(word, filters, more = "") {
  const href = `#cases?${new URLSearchParams(filters)}`;
  return el("a", { class: `word ${word.replaceAll(" ", "-")}`, href }, word, more);
}

let told = null;

function showWhere() {
  asked = 0;
  const top = document.querySelector("header").getBoundingClientRect().bottom > 0;
  const parts = top ? [] : crumbs();
  const text = parts.map((part) => part.textContent).join("\n");
  bar.hidden = !parts.length;
  if (text === told) return; // a link in it may have the focus
  told = text;
  bar.replaceChildren(...parts);
}

let asked = 0;

function ask() {
  asked ||= requestAnimationFrame(showWhere);
}

addEventListener("scroll", ask, { passive: true });
addEventListener("resize", ask);
follow(ask);
arrive();
document.documentElement.dataset.ready = "yes";
