#!/bin/bash
# The reward is the share of the four lines that are right.
right=0
while read -r line; do
  if grep -qxF "$line" /app/dues.csv; then
    right=$((right + 1))
  else
    echo "/app/dues.csv has no line $line"
  fi
done < /tests/expected.csv

case $right in
  0 | 4) echo $((right / 4)) ;;
  *) echo "0.$((right * 25))" ;;
esac > /logs/verifier/reward.txt
