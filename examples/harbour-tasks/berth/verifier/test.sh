#!/bin/bash
if [ "$(cat /output/berth.txt)" = 7 ]; then
  echo '{"reward": 1}'
else
  echo "/output/berth.txt does not say 7" >&2
  echo '{"reward": 0}'
fi > /logs/verifier/reward.json
