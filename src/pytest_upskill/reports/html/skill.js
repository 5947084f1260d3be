// SKILL.md, in the part of its skill and beside answers, with what changed since the git ref.
// Text from outside is only ever set as text, never as markup.

const FRONTMATTER = /^---[ \t]*\n[^]*?\n---[ \t]*(?:\n|$)/;

/** What is known of the SKILL.md of a skill: its text, and that at the ref. */
function skillFile(name) {
  const [now, before] = Object.hasOwn(data.skill_files, name) ? data.skill_files[name] : [null, null];
  return now && { now, before };
}

/** The file with its switches; `ref` is what it is compared with. */
function skillView(name, ref) {
  const { now, before } = skillFile(name);
  const box = el("div", { class: "skill-view" });
  let shown = "rendered";
  const draw = () => {
    const labels = ["rendered", "raw", ...(before ? [`diff to ${ref}`] : [])];
    const choices = labels.map((label) => {
      const kind = label.startsWith("diff") ? "diff" : label;
      return button(label, { "aria-pressed": `${shown === kind}`, "data-skill-show": kind }, () => {
        shown = kind;
        draw();
        box.querySelector(`[data-skill-show=${kind}]`).focus();
      });
    });
    const text = shown === "diff" ? diffOf(before[0], now[0], "SKILL.md is the same.")
      : shown === "raw" ? longText(now, "") : skillText(now);
    box.replaceChildren(el("div", { class: "controls" }, group("SKILL.md", choices),
      copier("Copy", () => now[0], "Copy SKILL.md")), text);
  };
  draw();
  return box;
}

/** Rendered, with its frontmatter as code. */
function skillText(cut) {
  const front = FRONTMATTER.exec(cut[0].slice(0, MOST_RENDERED))?.[0] ?? "";
  const body = front ? markdown(inkFor(cut[0].slice(front.length))) : markdown(inkFor(cut[0]));
  if (!body) return longText(cut, "");
  body.setAttribute("aria-label", "SKILL.md, rendered");
  if (front) {
    const lines = linesIn(front.trimEnd()).slice(1, -1);
    const page = { ink: inkFor(front), left: MOST_ELEMENTS };
    const code = el("div");
    addCode(page, code, lines, null);
    code.querySelector(".language").textContent = "frontmatter";
    body.prepend(...code.childNodes);
  }
  return el("div", {}, body, cutNote(cut));
}

for (const place of document.querySelectorAll("[data-skill-file]")) {
  const name = place.dataset.skillFile;
  if (!skillFile(name)) continue;
  const box = el("details", { class: "skill-file", toggle: () => {
    if (box.open && !box.querySelector(".skill-view")) box.append(skillView(name, data.against[name]));
  } }, el("summary", {}, el("h3", {},
    skillFile(name).before ? `SKILL.md, and what changed since ${data.against[name]}` : "SKILL.md")));
  place.replaceChildren(box);
}
