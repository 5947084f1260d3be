// What an agent did: Transcript({ record }).

function Transcript({ record }) {
  return null;
}

// AnswerFiles({ record }): the files that an agent left behind; data.images has pictures by digest.
function AnswerFiles({ record }) {
  return null;
}
