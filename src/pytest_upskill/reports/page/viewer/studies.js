// Matrix, parts and other studies: Studies(). run.studies has them, data.studies their tables.

function Studies() {
  return null;
}
