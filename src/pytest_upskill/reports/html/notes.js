// Notes of a reader on cases, and grades that the reader finds right or wrong. They stay in this
// browser until they are exported: pytest-upskill judge reads the file as labels.
// Whatever comes from the storage or from a file is checked, and only ever set as text.

const NOTES_KEY = `pytest-upskill notes ${data.run.key}`;
const LONGEST_NOTE = 10_000;
const LARGEST_IMPORT = 20_000_000; // bytes
const noteOf = new Map(); // by the id of the test
const rulingOf = new Map(); // by the place of the grade: whether it should have passed
const testById = new Map(tests.map((test) => [test.id, test]));
const testByName = new Map(tests.map((test) => [nameKey(test.skill, test.name, test.model), test]));
const notesTold = el("p", { role: "status", class: "told" });
const notesCount = el("p", { class: "facts" });
const notesList = el("ul", { class: "noted" });
const noteViews = new Set(); // of opened cases: an element, and what draws it again
let notesProblem = "";

CASE_PARTS.push(noteBox);
CHECK_PARTS.push(gradeButtons);

function nameKey(...names) {
  return JSON.stringify(names);
}

function placeOf(test, trial, number) {
  return `${test.id} ${trial.arm} ${trial.run} ${number}`;
}

/** The grade at a place, if this page has it. */
function gradeAt(place) {
  const [id, arm, run, number] = `${place}`.split(" ");
  const test = testById.get(id);
  const trial = test && trialOf(test, arm, Number(run));
  const check = trial?.checks[Number(number)];
  return check && placeOf(test, trial, Number(number)) === place
    ? { test, trial, number: Number(number), check } : null;
}

function passedCheck([mark]) {
  return mark === "ok";
}

// Kept in the browser.

function readNotes(event) {
  if (event && event.key !== NOTES_KEY && event.key !== null) return;
  let found = null;
  try {
    found = JSON.parse(localStorage.getItem(NOTES_KEY));
  } catch (error) {
    notesProblem = error instanceof SyntaxError ? "The notes kept in this browser are damaged."
      : "This browser keeps nothing for this page: export your notes before you close it.";
    return;
  }
  noteOf.clear();
  rulingOf.clear();
  const pairs = (list) => (Array.isArray(list) ? list.filter((one) => Array.isArray(one)) : []);
  for (const [id, text] of pairs(found?.notes)) {
    if (testById.has(id) && typeof text === "string" && text) noteOf.set(id, text.slice(0, LONGEST_NOTE));
  }
  for (const [place, passed] of pairs(found?.grades)) {
    if (typeof passed === "boolean" && gradeAt(place)) rulingOf.set(place, passed);
  }
}

function saveNotes() {
  notesProblem = "";
  try {
    if (noteOf.size || rulingOf.size) {
      localStorage.setItem(NOTES_KEY, JSON.stringify({ notes: [...noteOf], grades: [...rulingOf] }));
    } else {
      localStorage.removeItem(NOTES_KEY);
    }
  } catch (error) {
    const why = error?.name === "QuotaExceededError" ? "the browser's storage is full"
      : "this browser keeps nothing for this page";
    notesProblem = `Not kept: ${why}. Export your notes before you close the page.`;
  }
  drawNotes();
}

// In an opened case.

function noteBox(test) {
  const said = el("span", { role: "status", class: "told" });
  const area = el("textarea", {
    id: `note-${test.id}`, rows: 2, maxlength: LONGEST_NOTE,
    input: (event) => {
      const text = event.target.value;
      if (text.trim()) noteOf.set(test.id, text);
      else noteOf.delete(test.id);
      saveNotes();
      said.textContent = notesProblem || "kept in this browser";
      said.classList.toggle("error", Boolean(notesProblem));
    },
  });
  const fill = () => {
    area.value = noteOf.get(test.id) ?? "";
  };
  fill();
  noteViews.add([area, fill]);
  return el("section", { class: "note-box" },
    el("label", { for: area.id }, "Your note on this case"), area, said);
}

/** The judge's grades can be right or wrong; of others only a wrong one is worth a word. */
function gradeButtons(test, trial, number) {
  const place = placeOf(test, trial, number);
  const check = trial.checks[number];
  const isRubric = trial.judged?.some(([of]) => of === number);
  const words = isRubric ? ["right", "wrong"] : ["wrong"];
  const said = el("span", { role: "status", class: "told" });
  const draw = () => made.forEach((one) => {
    const passed = passedCheck(check) === (one.dataset.grade === "right");
    const marked = rulingOf.get(place) === passed;
    one.setAttribute("aria-pressed", marked);
    one.textContent = marked ? one.dataset.grade : `${one.dataset.grade}?`;
  });
  const made = words.map((word) => button(word, {
    "data-grade": word, "aria-label": `This grade of ${check[1]} is ${word}`,
  }, () => {
    const passed = passedCheck(check) === (word === "right");
    if (rulingOf.get(place) === passed) rulingOf.delete(place);
    else rulingOf.set(place, passed);
    saveNotes();
    draw();
    said.textContent = notesProblem;
  }));
  draw();
  noteViews.add([made[0], draw]);
  return el("span", { class: "grade", role: "group", "aria-label": "Your opinion of this grade" },
    ...made, said);
}

/** After a change from elsewhere: a file, another tab. */
function refreshViews() {
  for (const view of noteViews) {
    if (view[0].isConnected) view[1]();
    else noteViews.delete(view);
  }
}

// All of them.

function drawNotes() {
  const wrong = [...rulingOf].filter(([place, passed]) => passedCheck(gradeAt(place).check) !== passed);
  const marked = `${counted(rulingOf.size, "grade")} marked, ${number(wrong.length)} of them as wrong`;
  notesCount.textContent = noteOf.size || rulingOf.size
    ? `${counted(noteOf.size, "note")}; ${marked}.` : "There are none yet.";
  const places = [...rulingOf.keys()].map((place) => gradeAt(place).test.id);
  const ids = new Set([...noteOf.keys(), ...places]);
  notesList.replaceChildren(...[...ids].map((id) => {
    const test = testById.get(id);
    const text = (noteOf.get(id) ?? "").split("\n")[0].slice(0, 100);
    return el("li", {}, el("a", { href: `#${id}` }, test.name), ` on ${test.model} `,
      el("small", {}, text));
  }));
  for (const one of document.querySelectorAll("#notes .needs-notes")) one.disabled = ids.size === 0;
  if (notesProblem) tellOfNotes(notesProblem, true);
  else if (notesTold.classList.contains("error")) tellOfNotes("");
}

function tellOfNotes(text, isError = false) {
  notesTold.textContent = text;
  notesTold.classList.toggle("error", isError);
}

function exportedNotes() {
  const named = (test) => ({ skill: test.skill, case: test.name, model: test.model });
  const grades = [...rulingOf].map(([place, passed]) => {
    const { test, trial, number, check } = gradeAt(place);
    const rubric = trial.judged?.find(([of]) => of === number);
    return {
      kind: "grade", ...named(test), agent: Boolean(trial.activity),
      arm: trial.arm, run: trial.run, check: check[1], number,
      criterion: rubric ? data.criteria[rubric[1]] : null,
      graded: passedCheck(check), reason: check[2], passed,
      question: test.question?.[0] ?? null, answer: trial.answer?.[0] ?? null,
      cut: Boolean(trial.answer?.[1] || test.question?.[1]),
      note: noteOf.get(test.id) ?? "",
    };
  });
  const notes = [...noteOf].map(([id, note]) => ({ kind: "note", ...named(testById.get(id)), note }));
  return `${JSON.stringify({ schema: 1, run: data.run, notes: [...grades, ...notes] }, null, 1)}\n`;
}

function downloadNotes() {
  const link = URL.createObjectURL(new Blob([exportedNotes()], { type: "application/json" }));
  const name = `notes-${data.run.key}.json`;
  el("a", { href: link, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(link), 60_000);
  tellOfNotes(`Downloaded as ${name}.`);
}

async function copyNotes() {
  try {
    await navigator.clipboard.writeText(exportedNotes());
    tellOfNotes("Copied.");
  } catch {
    tellOfNotes("Copying is not allowed here; download them instead.", true);
  }
}

/** Notes of a colleague on the same run. What is here already stays. */
async function importNotes(event) {
  const file = event.target.files[0];
  if (!file) return;
  event.target.value = "";
  if (file.size > LARGEST_IMPORT) return tellOfNotes("Not read: the file is too large.", true);
  let found;
  try {
    found = JSON.parse(await file.text());
  } catch {
    return tellOfNotes("Not read: the file is not JSON.", true);
  }
  if (found?.schema !== 1 || !Array.isArray(found.notes)) {
    return tellOfNotes("Not read: the file has no notes that this page exported.", true);
  }
  if (found.run?.key !== data.run.key) {
    const when = typeof found.run?.started === "string" ? `, started ${found.run.started.slice(0, 40)}` : "";
    return tellOfNotes(`Not read: these are notes on another run${when}.`, true);
  }
  const counts = { taken: 0, here: 0, other: 0, long: 0, unknown: 0 };
  for (const one of found.notes) counts[takenNote(one)] += 1;
  saveNotes();
  refreshViews();
  if (notesProblem) return null;
  return tellOfNotes([
    `${number(counts.taken)} read`,
    counts.here && `${number(counts.here)} here already`,
    counts.other && `${number(counts.other)} differing from yours, which stay`,
    counts.long && `${number(counts.long)} too long, not taken`,
    counts.unknown && `${number(counts.unknown)} on nothing in this page`,
  ].filter(Boolean).join("; ") + ".", false);
}

function takenNote(one) {
  const names = [one?.skill, one?.case, one?.model];
  const test = names.every((name) => typeof name === "string") && testByName.get(nameKey(...names));
  if (!test) return "unknown";
  if (one.kind === "note" && typeof one.note === "string" && one.note.trim()) {
    const mine = noteOf.get(test.id);
    if (mine?.includes(one.note)) return "here";
    const both = mine ? `${mine}\n\n${one.note}` : one.note;
    if (both.length > LONGEST_NOTE) return "long";
    noteOf.set(test.id, both);
    return "taken";
  }
  const numbers = [one.run, one.number];
  if (typeof one.arm !== "string" || !numbers.every(Number.isInteger)) return "unknown";
  const place = [test.id, one.arm, ...numbers].join(" ");
  const grade = gradeAt(place);
  if (one.kind !== "grade" || typeof one.passed !== "boolean" || grade?.check[1] !== one.check) return "unknown";
  const mine = rulingOf.get(place);
  if (mine !== undefined) return mine === one.passed ? "here" : "other";
  rulingOf.set(place, one.passed);
  return "taken";
}

/** The second press deletes, so that one slip does not. */
function deleteNotes(event) {
  const pressed = event.target;
  if (pressed.dataset.sure !== "yes") {
    pressed.dataset.sure = "yes";
    pressed.textContent = "Press again to delete all";
    return;
  }
  noteOf.clear();
  rulingOf.clear();
  forgetDelete(pressed);
  saveNotes();
  refreshViews();
  tellOfNotes(notesProblem || "Deleted.", Boolean(notesProblem));
}

function forgetDelete(pressed) {
  delete pressed.dataset.sure;
  pressed.textContent = "Delete all";
}

readNotes();
document.getElementById("notes-panel").replaceChildren(
  notesCount, notesList,
  el("div", { class: "controls" },
    button("Download as JSON", { class: "needs-notes" }, downloadNotes),
    button("Copy as JSON", { class: "needs-notes" }, copyNotes),
    button("Delete all", { class: "needs-notes", blur: (event) => forgetDelete(event.target) }, deleteNotes),
    el("label", { class: "file" }, "Read notes of others: ",
      el("input", { type: "file", accept: ".json,application/json", change: importNotes }))),
  notesTold,
);
drawNotes();
addEventListener("storage", (event) => {
  readNotes(event);
  drawNotes();
  refreshViews();
});
