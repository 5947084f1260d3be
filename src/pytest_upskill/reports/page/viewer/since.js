// What changed since an earlier run: Since({ changes }), of `changes_values` in comparing.py.

function Since({ changes }) {
  return null;
}
