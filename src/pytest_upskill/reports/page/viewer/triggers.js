// Queries and whether they open the skill: Triggers({ address }), of run.trigger_summaries.

function Triggers({ address }) {
  return null;
}
